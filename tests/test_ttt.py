"""TTT against its definition, in double precision: losses differentiated by autograd, weights that move each token."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toys import alive, close, each

from seqloom.core.backbone import Backbone
from seqloom.core.state import detach_state, map_state
from seqloom.core.taps import record
from seqloom.layers.fast_weights import EPS, Descent, learn, norm_gradient, normalise, recall_all
from seqloom.layers.mini_batches import MiniBatches
from seqloom.layers.positions import Rotary
from seqloom.models.linear_attention import attend
from seqloom.models.ttt import Config, InnerModel

ROWS, LENGTH, HEADS, SIZE = 2, 11, 3, 4
WIDTH = HEADS * SIZE

each_inner = pytest.mark.parametrize("inner", ["linear", "mlp"])
each_size = pytest.mark.parametrize("size", [1, 4, LENGTH, 16])


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def backbone(**options: Any) -> Backbone:
    return alive(Config.model_validate({"width": 16, "depth": 2, **options}).build())


def inner_model(inner: str, size: int, forget: bool = True) -> InnerModel:
    options = {"width": WIDTH, "heads": HEADS, "inner": inner, "mini_batch": size, "forget": forget}
    return alive(InnerModel(HEADS, SIZE, Config.model_validate(options)))


def lessons() -> tuple[Tensor, Tensor]:
    """What an inner model is given: queries, keys and values, and rates."""
    return vectors(ROWS, LENGTH, 3 * WIDTH), vectors(ROWS, LENGTH, HEADS, seed=1).sigmoid()


def read(model: InnerModel, sizes: list[int], qkv: Tensor, rate: Tensor) -> tuple[Tensor, Any]:
    """In pieces of these sizes; pieces of one token take the primal form."""
    outputs, memory, at = [], None, torch.zeros(ROWS, dtype=torch.long)
    for x, r in zip(qkv.split(sizes, 1), rate.split(sizes, 1), strict=True):
        output, memory = model(x, r, memory, MiniBatches(x, at, None, model.mini_batch))
        outputs.append(output)
        at = at + x.size(1)
    return torch.cat(outputs, dim=1), memory


def defined(model: InnerModel, qkv: Tensor, rate: Tensor) -> Tensor:
    """Every head of every row by itself, the definition word for word."""
    outputs = torch.zeros(ROWS, LENGTH, WIDTH, dtype=torch.float64)
    q, k, v = qkv.view(ROWS, LENGTH, 3, HEADS, SIZE).unbind(2)
    angles = Rotary(SIZE).double().angles(torch.arange(LENGTH) % model.mini_batch)
    for row in range(ROWS):
        for head in range(HEADS):
            gain, bias = model.gain[head, 0].detach(), model.bias[head, 0].detach()
            start = [w[head].detach() for w in model.start]
            weights, keep = start, 1.0 if model.keep is None else model.keep[head].sigmoid().item()
            turned = [Rotary.turn(x[row, :, head], angles) for x in (q, k)]

            def given(x: Tensor, weights: list[Tensor]) -> Tensor:
                for w in weights[:-1]:
                    x = F.gelu(x @ w[:-1] + w[-1], approximate="tanh")
                z = x @ weights[-1][:-1] + weights[-1][-1]
                return F.layer_norm(z, z.shape[-1:], gain, bias, EPS)  # noqa: B023

            for t in range(LENGTH):
                n = t % model.mini_batch
                if n == 0:
                    begun = [w + keep * (end - w) for w, end in zip(start, weights, strict=True)]
                    sums = [torch.zeros_like(w) for w in start]
                leaves = [w.clone().requires_grad_() for w in begun]
                target = v[row, t, head] - turned[1][t]
                loss = (given(turned[1][t], leaves) - target).square().sum() / 2
                steps = torch.autograd.grad(loss, leaves)
                sums = [s + rate[row, t, head] * step for s, step in zip(sums, steps, strict=True)]
                tau = max(0.0, (1 + model.offset[n].item()) / (n + 1))
                weights = [w - tau * s for w, s in zip(begun, sums, strict=True)]
                outputs[row, t, head * SIZE : (head + 1) * SIZE] = turned[0][t] + given(turned[0][t], weights)
    return outputs


@each_inner
@each_size
@each(forget=[False, True])
@each(pieces=[[LENGTH], [1] * LENGTH, [4, 4, 3], [3, 1, 7], [2, 9]])
def test_both_forms_are_the_definition(inner: str, size: int, forget: bool, pieces: list[int]) -> None:
    model = inner_model(inner, size, forget)
    qkv, rate = lessons()
    outputs, _ = read(model, pieces, qkv, rate)
    close(outputs, defined(model, qkv, rate))


@each_inner
def test_the_dual_form_has_the_gradients_of_the_primal_form(inner: str) -> None:
    model = inner_model(inner, 4)
    found = []
    for pieces in ([LENGTH], [1] * LENGTH):
        given = [x.requires_grad_() for x in lessons()]
        outputs, memory = read(model, pieces, *given)
        loss = (outputs * vectors(*outputs.shape, seed=2)).sum() + sum(
            x.square().sum() for part in memory for x in part
        )
        found.append(torch.autograd.grad(loss, [*given, *model.parameters()]))
    for dual, primal in zip(*found, strict=True):
        close(dual, primal)


def test_the_gradient_of_the_loss_equals_finite_differences() -> None:
    z, gain, bias, target = (vectors(5, SIZE, seed=n) for n in range(4))

    def losses(z: Tensor) -> Tensor:
        return (gain * normalise(z) + bias - target).square().sum(-1) / 2

    found, step = norm_gradient(z, gain.square(), gain * (bias - target)), 1e-6
    for n in range(SIZE):
        nudge = step * F.one_hot(torch.tensor(n), SIZE)
        wanted = (losses(z + nudge) - losses(z - nudge)) / (2 * step)
        torch.testing.assert_close(found[:, n], wanted, rtol=1e-6, atol=1e-6)


def test_the_derivative_of_that_gradient_equals_finite_differences() -> None:
    assert torch.autograd.gradcheck(norm_gradient, [vectors(2, 3, SIZE, seed=n).requires_grad_() for n in range(3)])


def test_without_norm_from_zero_with_rate_one_it_is_linear_attention() -> None:
    q, k, v = (vectors(6, LENGTH, SIZE, seed=n) for n in range(3))
    zeros, tau = (torch.zeros(6, SIZE, SIZE, dtype=torch.float64),), torch.ones(LENGTH, 1, dtype=torch.float64)
    answers = recall_all(zeros, None, q, learn(zeros, k, lambda z: z - v), tau)
    close(answers, (q @ k.mT).tril() @ v)
    close(answers, attend(q[None], k[None], v[None], zeros[0][None], chunk=4)[0][0])
    descent, outputs = Descent(zeros, zeros, None, tau[-1:]), []
    for x, y, z in zip(*(x[None].split(1, dim=2) for x in (q, k, v)), strict=True):
        outputs.append(descent.primal(x, y, [partial(torch.sub, other=z[0])], tau[:1], [[False]])[0])
    close(torch.cat(outputs, dim=1), answers)


@each_inner
@each(cut=[4, 8, 3, 9, 1, 10])
def test_prefix_and_suffix_equal_the_whole_at_and_off_a_boundary(inner: str, cut: int) -> None:
    model, x = backbone(inner=inner, mini_batch=4), vectors(ROWS, LENGTH, 16)
    whole, end = model(x)
    before, state = model(x[:, :cut])
    after, state = model(x[:, cut:], state)
    close(torch.cat((before, after), dim=1), whole)
    map_both(close, state, end)


@each_inner
@each_size
def test_one_token_at_a_time_equals_all_at_once_and_ends_in_the_same_state(inner: str, size: int) -> None:
    model, x, state, outputs = backbone(inner=inner, mini_batch=size), vectors(ROWS, LENGTH, 16), None, []
    with torch.inference_mode():
        for token in x.split(1, dim=1):
            output, state = model(token, state)
            outputs.append(output)
        whole, end = model(x)
    close(torch.cat(outputs, dim=1), whole)
    map_both(close, state, end)


@each_inner
def test_padding_teaches_nothing_and_takes_no_place(inner: str) -> None:
    model, x = backbone(inner=inner, mini_batch=4), vectors(3, LENGTH, 16)
    lengths = [LENGTH, 5, 0]
    mask = torch.arange(LENGTH) < torch.tensor(lengths)[:, None]
    noise = torch.where(mask[..., None], x, 100 * vectors(3, LENGTH, 16, seed=3))
    before = model.begin(vectors(3, 6, 16, seed=4), torch.arange(6) < torch.tensor([[6], [3], [1]]))
    outputs, state = model(noise, before, mask)
    for row, length in enumerate(lengths):
        mine = map_state(lambda t: t[row : row + 1], before)  # noqa: B023
        alone, end = model(x[row : row + 1, :length], mine)
        close(outputs[row : row + 1, :length], alone)
        map_both(close, map_state(lambda t: t[row : row + 1], state), end)  # noqa: B023


def test_a_new_sequence_knows_nothing_of_the_last() -> None:
    model, first, second = backbone(mini_batch=4), vectors(ROWS, LENGTH, 16), vectors(ROWS, LENGTH, 16, seed=1)
    fresh, _ = model(second)
    _, state = model(first)
    assert (model(second, state)[0] - fresh).abs().max() > 1e-3, "a state that is handed on matters"
    close(model(second)[0], fresh)
    close(model(second, map_state(torch.zeros_like, state))[0], fresh)


@pytest.mark.parametrize("size", [1, LENGTH])
def test_learning_online_and_from_one_batch_both_run(size: int) -> None:
    model, x = backbone(mini_batch=size), vectors(ROWS, LENGTH, 16).requires_grad_()
    outputs, state = model(x)
    assert outputs.isfinite().all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(outputs.sum(), [x, *model.parameters()]))
    learned, unfinished = state[1][0][1]
    assert learned[0].ne(0).any() and unfinished[0].eq(0).all(), "both stand at a boundary"


@each_inner
def test_a_lesson_that_comes_again_surprises_less(inner: str) -> None:
    torch.manual_seed(0)
    options = {"width": WIDTH, "heads": HEADS, "inner": inner, "mini_batch": 4, "forget": False}
    model = InnerModel(HEADS, SIZE, Config.model_validate(options)).double()
    lesson, rate = vectors(ROWS, 4, 3 * WIDTH), torch.full((ROWS, 80, HEADS), 0.1, dtype=torch.float64)
    with record(model, "error") as trace:
        read(model, [80], lesson.repeat(1, 20, 1), rate)
    (errors,) = trace["error"]
    assert errors.shape == (ROWS, 80, HEADS)
    assert errors[:, -4:].mean() < 0.9 * errors[:, :4].mean()


def test_rates_are_positive_and_bounded_and_can_be_watched() -> None:
    model = backbone(mini_batch=4, base_rate=0.5)
    with record(model, "*.rate") as trace:
        model(vectors(ROWS, LENGTH, 16))
    for (rates,) in trace.values():
        assert rates.shape == (ROWS, LENGTH, 4) and (rates > 0).all() and (rates < 0.5 / 4).all()


def test_the_weights_it_begins_with_learn_even_from_a_state_that_is_cut() -> None:
    model, x = backbone(mini_batch=4), vectors(ROWS, 6, 16)
    outputs, _ = model(x, detach_state(model(x)[1]))
    assert all(g.ne(0).any() for g in torch.autograd.grad(outputs.square().sum(), list(model.parameters())))


def test_widths_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="width=20 must be a multiple of 2 x heads"):
        Config.model_validate({"width": 20})


def map_both(check: Any, ours: Any, theirs: Any) -> None:
    """Tensor by tensor of two states."""
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            map_both(check, one, other)
    elif ours is not None:
        check(ours, theirs)
