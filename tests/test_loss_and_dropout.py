"""Cross-entropy and dropout of our own: the library's numbers, in less time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from toys import close

from seqloom.core.batch import IGNORE
from seqloom.core.loss import cross_entropy
from seqloom.layers.dropout import Dropout

each_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
TARGETS = torch.tensor([[3, 0, IGNORE, 6], [IGNORE, 5, 5, 1]])


def logits(dtype: torch.dtype = torch.float64) -> Tensor:
    values = torch.randn(2, 4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    return values.to(dtype).requires_grad_()


@each_smoothing
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_loss_and_its_gradient_are_the_librarys(smoothing: float, dtype: torch.dtype) -> None:
    ours, theirs = logits(dtype), logits(dtype)
    loss = cross_entropy(ours, TARGETS, smoothing)
    wanted = F.cross_entropy(theirs.flatten(0, 1), TARGETS.flatten(), reduction="sum", label_smoothing=smoothing)
    close(loss, wanted)
    (loss * 2.5).backward()
    (wanted * 2.5).backward()
    close(ours.grad, theirs.grad)


@each_smoothing
def test_the_gradient_is_that_of_small_differences(smoothing: float) -> None:
    x, step = logits(), 1e-6
    (found,) = torch.autograd.grad(cross_entropy(x, TARGETS, smoothing), x)
    with torch.no_grad():
        for place in range(0, x.numel(), 3):
            nudge = torch.zeros(x.numel(), dtype=x.dtype)
            nudge[place] = step
            up, down = (cross_entropy(x + sign * nudge.view_as(x), TARGETS, smoothing) for sign in (1, -1))
            assert float((up - down) / (2 * step)) == pytest.approx(float(found.flatten()[place]), abs=1e-6)


def test_a_token_nobody_asks_for_has_no_gradient() -> None:
    x = logits()
    cross_entropy(x, TARGETS, 0.1).backward()
    assert x.grad is not None and x.grad[TARGETS == IGNORE].eq(0).all()
    nothing = cross_entropy(y := logits(), torch.full_like(TARGETS, IGNORE), 0.1)
    nothing.backward()
    assert nothing == 0 and y.grad is not None and y.grad.eq(0).all()


def test_impossible_logits_of_other_tokens_do_no_harm() -> None:
    x = torch.tensor([[0.0, 1e30, -1e30]], requires_grad=True)
    cross_entropy(x, torch.tensor([1])).backward()
    assert x.grad is not None and x.grad.isfinite().all()


def test_a_second_gradient_is_refused_and_not_wrong() -> None:
    loss = cross_entropy(logits(), TARGETS, 0.1)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="already called"):
        loss.backward()


def test_logits_are_left_as_they_were() -> None:
    x = logits()
    before = x.detach().clone()
    cross_entropy(x, TARGETS, 0.1).backward()
    assert torch.equal(x, before)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_dropout_keeps_its_share_and_the_expectation(p: float) -> None:
    torch.manual_seed(0)
    count = 400_000
    outputs = Dropout(p)(torch.ones(count))
    kept, deviation = outputs != 0, (p * (1 - p) / count) ** 0.5
    assert float(kept.double().mean()) == pytest.approx(1 - p, abs=5 * deviation + 2**-16)
    assert outputs[kept].unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-3)
    assert float(outputs.double().mean()) == pytest.approx(1.0, abs=6 * deviation / (1 - p))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_four_numbers_of_one_draw_are_fair_and_know_nothing_of_each_other(p: float) -> None:
    torch.manual_seed(1)
    count = 200_000
    kept = (Dropout(p)(torch.ones(count, 4)) != 0).double()
    deviation = (p * (1 - p) / count) ** 0.5
    assert kept.mean(0).tolist() == pytest.approx([1 - p] * 4, abs=5 * deviation)
    together = torch.corrcoef(kept.T) - torch.eye(4)
    assert together.abs().max() < 5 / count**0.5
    after = torch.corrcoef(torch.stack((kept[:-1, 3], kept[1:, 0])))[0, 1]
    assert after.abs() < 5 / count**0.5


def test_dropout_in_evaluation_and_of_nothing_is_the_identity() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 3, 7)], ids=str)
def test_dropout_takes_any_shape_and_keeps_the_type(shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        outputs = Dropout(0.3)(torch.ones(shape, dtype=dtype))
        assert outputs.shape == shape and outputs.dtype == dtype
    across = torch.ones(6, 4).T
    assert Dropout(0.3)(across).shape == (4, 6)


def test_the_gradient_of_dropout_is_what_it_multiplied_by() -> None:
    x = torch.randn(50, 7, dtype=torch.float64).requires_grad_()
    outputs = Dropout(0.4)(x)
    outputs.sum().backward()
    assert x.grad is not None
    close(x.grad * x.detach(), outputs.detach())


def test_the_same_seed_drops_the_same() -> None:
    x, layer = torch.ones(100), Dropout(0.5)
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first) and not torch.equal(layer(x), first)


def test_a_share_of_nearly_all_still_gives_numbers() -> None:
    layer: nn.Module = Dropout(0.9999999)
    assert layer(torch.ones(1000)).isfinite().all()
