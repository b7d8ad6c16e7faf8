"""Mamba-2 against the paper's equations written out, and against transformers' with copied weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toys import alive, close, network, tokens
from transformers import Mamba2Config, Mamba2Model

from seqloom.core.state import flatten_state
from seqloom.core.taps import record, replace
from seqloom.models.mamba2 import Config, StateSpace

ROWS, LENGTH, WIDTH, HEADS, STATE = 2, 19, 12, 3, 5


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def mixer(**options: Any) -> StateSpace:
    given = {"width": WIDTH, "heads": HEADS, "state": STATE, "chunk": 4, **options}
    return alive(StateSpace(Config.model_validate(given)))


def paper(own: StateSpace, x: Tensor) -> Tensor:
    """The block of figure 6 with the recurrence of section 2, one step and one head after the other."""
    inner, kernel = own.inner, len(own.near)
    z, read, dt = (x @ own.into.weight.T).split([inner, inner + 2 * STATE, HEADS], dim=-1)
    padded = F.pad(read, (0, 0, kernel - 1, 0))
    mixed = F.silu(sum(padded[:, n : n + LENGTH] * own.near[n, 0] for n in range(kernel)) + own.near_bias)
    x_in, b, c = mixed.split([inner, STATE, STATE], dim=-1)
    dt = torch.log(1 + torch.exp(dt + own.dt_bias))
    y = torch.zeros_like(x_in)
    for head in range(HEADS):
        units = slice(head * inner // HEADS, (head + 1) * inner // HEADS)
        s = x.new_zeros(ROWS, STATE, inner // HEADS)
        for t in range(LENGTH):
            step, x_t = dt[:, t, head, None, None], x_in[:, t, None, units]
            s = torch.exp(-step * torch.exp(own.log_a[head])) * s + step * b[:, t, :, None] * x_t
            y[:, t, units] = (c[:, t, None] @ s + own.skip[head] * x_t)[:, 0]
    y = y * F.silu(z)
    y = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * own.norm.weight
    return y @ own.out.weight.T


@pytest.mark.parametrize("chunk", [1, 4, 64])
@pytest.mark.parametrize("kernel", [1, 4])
def test_the_mixer_is_the_papers(chunk: int, kernel: int) -> None:
    own, x = mixer(chunk=chunk, kernel=kernel), vectors(ROWS, LENGTH, WIDTH)
    wanted = paper(own, x)
    torch.testing.assert_close(own(x, None, None)[0], wanted, rtol=1e-10, atol=1e-10)
    memory, outputs = None, []
    for x_t in x.split(1, dim=1):
        y_t, memory = own(x_t, memory, None)
        outputs.append(y_t)
    torch.testing.assert_close(torch.cat(outputs, dim=1), wanted, rtol=1e-10, atol=1e-10)
    single = own.float()(x.float(), None, None)[0]
    torch.testing.assert_close(single, wanted.float(), rtol=1e-5, atol=1e-5)


def test_the_whole_stack_equals_transformers_with_copied_weights() -> None:
    ours = alive(Config(width=16, depth=2, heads=4, state=6, chunk=8).build(), std=0.2).float()
    theirs = Mamba2Model(
        Mamba2Config(
            hidden_size=16, num_hidden_layers=2, num_heads=4, head_dim=8, state_size=6, n_groups=1, chunk_size=8,
            vocab_size=11, layer_norm_epsilon=torch.finfo(torch.float32).eps,
        )
    ).eval()  # fmt: skip
    blocks: Any = ours.blocks
    with torch.no_grad():
        theirs.norm_f.weight.copy_(ours.norm.weight)
        for block, layer in zip(blocks, theirs.layers, strict=True):
            own, other = block.mixer, layer.mixer
            layer.norm.weight.copy_(block.norm_1.weight)
            other.in_proj.weight.copy_(own.into.weight)
            other.conv1d.weight.copy_(own.near.permute(2, 1, 0))
            other.conv1d.bias.copy_(own.near_bias)
            for name, weight in (("dt_bias", own.dt_bias), ("A_log", own.log_a), ("D", own.skip)):
                getattr(other, name).copy_(weight)
            other.norm.weight.copy_(own.norm.weight)
            other.norm.variance_epsilon = own.norm.eps
            other.out_proj.weight.copy_(own.out.weight)
        x = vectors(ROWS, LENGTH, 16).float()
        close(ours(x)[0], theirs(inputs_embeds=x).last_hidden_state)


def test_an_untrained_memory_forgets_at_many_paces() -> None:
    own = StateSpace(Config())
    steps = 1 / F.softplus(own.dt_bias.detach())
    assert steps[0].item() == pytest.approx(2, rel=1e-4) and steps[-1].item() == pytest.approx(512, rel=1e-3)


def test_padding_leaves_the_state_unchanged() -> None:
    own, x = mixer(), vectors(ROWS, LENGTH, WIDTH)
    mask = torch.arange(LENGTH) < torch.tensor([[7], [0]])
    outputs, after = own(x, None, mask)
    alone, end = own(x[:1, :7], None, None)
    close(outputs[:1, :7], alone)
    for ours, theirs in zip(after, end, strict=True):
        close(ours[:1], theirs)
        assert ours[1].eq(0).all()
    assert outputs.isfinite().all()


def test_the_state_never_grows() -> None:
    model = alive(Config(width=16, heads=4, state=6, depth=1).build())
    for length in (1, 5, 200):
        _, (read, ((_, (recent, matrix)),)) = model(vectors(ROWS, length, 16))
        assert read.tolist() == [length] * ROWS
        assert recent.shape == (ROWS, 3, 44) and matrix.shape == (ROWS, 1, 6, 32)


def test_what_a_step_keeps_and_writes_is_what_it_does_to_the_memory() -> None:
    own, x = mixer(heads=1), vectors(ROWS, 2, WIDTH)
    _, memory = own(x[:, :1], None, None)
    with record(own) as trace:
        _, (_, after) = own(x[:, 1:], memory, None)
    keep, write = trace["forget_gate"][0][:, 0], trace["write"][0][:, 0]  # (B, 1)
    added = after - keep[..., None, None] * memory[1]
    close(added.flatten(1).norm(dim=1, keepdim=True), write)
    with replace(own, {"forget_gate": torch.zeros_like}):
        close(own(x[:, 1:], memory, None)[1][1], added)


def test_a_memory_keeps_its_precision_where_products_are_rounded() -> None:
    model = network("mamba2", {}).float()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, state = model(tokens(ROWS, 9))
    assert outputs.isfinite().all()
    assert {t.dtype for t in flatten_state(state).values()} == {torch.float32, torch.int64}
