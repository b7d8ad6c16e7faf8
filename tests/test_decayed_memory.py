"""The chunked form of a decaying matrix memory against its recurrence, in double and in single precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from toys import close

from seqloom.core.taps import Tap
from seqloom.layers.decayed_memory import decay_tapped, remember

ROWS, GROUPS, LENGTH, HEADS, KEYS, SIZE = 2, 2, 23, 3, 4, 5
Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]

each_chunk = pytest.mark.parametrize("chunk", [1, 4, LENGTH, 64])


def parts(dtype: torch.dtype = torch.float64, length: int = LENGTH) -> Parts:
    """Queries, keys, values, log decays from nothing forgotten to all, and what was there before."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(length, KEYS), (length, KEYS), (length, HEADS * SIZE), (length, HEADS), (KEYS, HEADS * SIZE)]
    q, k, v, decay, past = (torch.randn(ROWS, GROUPS, *shape, generator=generator).to(dtype) for shape in shapes)
    return q, k, v, -torch.nn.functional.softplus(3 * decay), past


def loop(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """S_t = a_t S_{t-1} + k_t^T v_t,  y_t = q_t S_t, head by head."""
    v, past = v.unflatten(-1, (HEADS, SIZE)), past.unflatten(-1, (HEADS, SIZE))
    outputs = []
    for t in range(q.size(2)):
        past = decay[:, :, t, None, :, None].exp() * past + torch.einsum("bgn,bghp->bgnhp", k[:, :, t], v[:, :, t])
        outputs.append(torch.einsum("bgn,bgnhp->bghp", q[:, :, t], past))
    return torch.stack(outputs, dim=2).flatten(3), past.flatten(3)


@each_chunk
def test_chunks_give_what_the_recurrence_gives_and_its_gradients(chunk: int) -> None:
    given = [part.requires_grad_() for part in parts()]
    found, wanted = remember(*given, chunk), loop(*given)  # type: ignore[arg-type]
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    of_ours, of_theirs = (torch.autograd.grad(y.square().sum() + s.sum(), given) for y, s in (found, wanted))
    for ours, theirs in zip(of_ours, of_theirs, strict=True):
        close(ours, theirs)


@each_chunk
def test_single_precision_is_near_the_recurrence_over_many_steps(chunk: int) -> None:
    given = parts(torch.float32, length=300)
    y, end = remember(*given, chunk)
    wanted, last = loop(*(part.double() for part in given))
    for ours, theirs in ((y, wanted), (end, last)):
        assert (ours - theirs).abs().max() < 1e-5 * theirs.abs().max()


def test_decays_beyond_all_numbers_forget_and_do_no_harm() -> None:
    q, k, v, decay, past = parts(torch.float32)
    decay = torch.full_like(decay, -1e4).requires_grad_()
    y, _ = remember(q, k.requires_grad_(), v, decay, past, 8)
    close(y, (q * k).sum(-1, keepdim=True) * v)
    assert all(g.isfinite().all() for g in torch.autograd.grad(y.sum(), (k, decay)))


def test_a_zero_key_without_decay_leaves_the_memory_as_it_was() -> None:
    q, k, v, decay, past = parts()
    for steps in (1, 7):
        cut = [part[:, :, :steps] for part in (q, 0 * k, v, 0 * decay)]
        assert torch.equal(remember(*cut, past, 4)[1], past)


def test_a_decay_that_is_put_in_takes_effect_even_if_it_is_zero() -> None:
    tap, decay = Tap(), torch.tensor([-0.1, -2.0])
    assert decay_tapped(tap, decay) is decay
    tap.trace = []
    assert decay_tapped(tap, decay) is decay
    close(tap.trace[0], decay.exp())
    tap.edit = torch.zeros_like
    assert (decay_tapped(tap, decay) < -60).all()
