"""All steps at once equal step by step: linear recurrences and short convolutions, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toys import each

from seqloom.layers import scan as scanning
from seqloom.layers.convolution import convolve
from seqloom.layers.scan import recurrence, scan

WAYS = {"in place": (0, 1), "by halves": (math.inf, 1), "by halves, then in place": (math.inf, 8), "as chosen": None}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way through the steps, the one that other devices take among them, whatever would be chosen here."""
    if WAYS[request.param] is not None:
        large, few = WAYS[request.param]
        monkeypatch.setattr(scanning, "LARGE", large)
        monkeypatch.setattr(scanning, "FEW", few)
    return request.param


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def example(rows: int, steps: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Factors near 0, near 1 and between, large and small inputs, and a start."""
    a = (4 * normal(rows, steps, size)).sigmoid()
    return a, 10 * normal(rows, steps, size, seed=1) * normal(rows, 1, size, seed=2), normal(rows, size, seed=3)


def close(ours: Tensor, theirs: Tensor, digits: float) -> None:
    ours, theirs = ours.detach(), theirs.detach()
    scale = float(theirs.abs().max()) if theirs.numel() else 0.0
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=digits, atol=digits * max(1.0, scale))


def gradients(outputs: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return torch.autograd.grad((outputs * normal(*outputs.shape, seed=9).to(outputs.dtype)).sum(), inputs)


@each(steps=[0, 1, 2, 3, 7, 33, 64, 100, 1000, 1537])
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_a_scan_equals_the_loop_in_values_and_gradients(
    way: str, steps: int, dtype: torch.dtype, digits: float
) -> None:
    exact = tuple(t.requires_grad_() for t in example(3, steps, 5))
    wanted = recurrence(*exact)
    given = tuple(t.detach().to(dtype).requires_grad_() for t in exact)
    found = scan(*given)
    close(found, wanted, digits)
    if steps:
        for ours, theirs in zip(gradients(found, given), gradients(wanted, exact), strict=True):
            assert ours.dtype == dtype
            close(ours, theirs, digits)


@each(rows=[1, 40])
def test_rows_few_and_many_take_different_ways_to_the_same_values(rows: int) -> None:
    given = example(rows, 300, 64)
    close(scan(*given), recurrence(*given), 1e-10)


@each(steps=[1, 2, 5, 8])
def test_the_backward_is_what_differences_show(way: str, steps: int) -> None:
    given = tuple(t.requires_grad_() for t in example(2, steps, 3))
    assert torch.autograd.gradcheck(scan, given)


@each(factor=[0.0, 1e-30, 1e-3, 1 - 1e-7, 1.0])
@each(size=[1e-20, 1.0, 1e20])
def test_extreme_factors_and_inputs_lose_nothing(way: str, factor: float, size: float) -> None:
    _, b, start = example(2, 1000, 4)
    given = tuple(t.float().requires_grad_() for t in (torch.full_like(b, factor), size * b, size * start))
    found, wanted = scan(*given), recurrence(*(t.detach().double() for t in given))
    assert float((found.detach() - wanted).abs().max()) <= 1e-5 * float(wanted.abs().max())
    assert all(g.isfinite().all() for g in gradients(found / size, given))


def test_gates_that_close_and_open_again_are_followed(way: str) -> None:
    a = torch.tensor([0.0, 1.0, 1e-38, 1.0, 0.5], dtype=torch.float64).repeat(200)[None, :, None]
    b, start = normal(1, 1000, 1), normal(1, 1)
    close(scan(a.float(), b.float(), start.float()), recurrence(a, b, start), 1e-5)


def test_memory_of_any_layout_will_do_and_is_left_alone(way: str) -> None:
    a, b, start = example(4, 70, 6)
    both = torch.cat((a, b), dim=-1)
    slices = [t.transpose(0, 1).contiguous().transpose(0, 1) for t in both.chunk(2, dim=-1)], both.chunk(2, dim=-1)
    for given in (*slices, (a[:, :1].expand_as(a), b)):
        before = [t.clone() for t in (*given, start)]
        close(scan(*given, start), recurrence(*given, start), 1e-10)
        assert all(torch.equal(t, was) for t, was in zip((*given, start), before, strict=True))


def test_a_gradient_that_is_the_same_everywhere_is_read_as_it_is(way: str) -> None:
    exact = tuple(t.requires_grad_() for t in example(3, 50, 4))
    wanted = torch.autograd.grad(recurrence(*exact).sum(), exact)
    for ours, theirs in zip(torch.autograd.grad(scan(*exact).sum(), exact), wanted, strict=True):
        close(ours, theirs, 1e-10)


def test_steps_that_keep_everything_and_add_nothing_leave_the_memory(way: str) -> None:
    _, _, start = example(2, 9, 3)
    h = scan(torch.ones(2, 90, 3).double(), torch.zeros(2, 90, 3).double(), start)
    assert torch.equal(h, start[:, None].expand_as(h))


def test_in_pieces_equals_the_whole(way: str) -> None:
    a, b, start = example(3, 120, 4)
    whole, pieces = scan(a, b, start), []
    for a_piece, b_piece in zip(a.split([1, 50, 2, 67], 1), b.split([1, 50, 2, 67], 1), strict=True):
        pieces.append(scan(a_piece, b_piece, start))
        start = pieces[-1][:, -1]
    close(torch.cat(pieces, dim=1), whole, 1e-10)


def test_a_scan_equals_the_papers_sum_of_logarithms(way: str) -> None:
    """Appendix B: log h = A* + logcumsumexp(log b - A*), with A* the running sum of log a; for positive values."""
    a, b, start = example(2, 40, 3)
    b, start = b.abs(), start.abs()
    total = F.pad(a.log().cumsum(1), (0, 0, 1, 0))
    values = torch.cat((start[:, None], b), dim=1).log()
    wanted = (total + (values - total).logcumsumexp(1)).exp()[:, 1:]
    close(scan(a, b, start), wanted, 1e-10)


@each(steps=[0, 1, 2, 30])
@each(kernel=[1, 2, 4])
def test_a_short_convolution_equals_the_librarys(steps: int, kernel: int) -> None:
    read, weight = normal(3, kernel - 1 + steps, 5).requires_grad_(), normal(kernel, 1, 5, seed=1).requires_grad_()
    found = convolve(read, weight)
    assert found.shape == (3, steps, 5)
    if steps:
        wanted = F.conv1d(read.transpose(1, 2), weight.permute(2, 1, 0), groups=5).transpose(1, 2)
        close(found, wanted, 1e-10)
        for ours, theirs in zip(gradients(found, (read, weight)), gradients(wanted, (read, weight)), strict=True):
            close(ours, theirs, 1e-10)
        assert torch.autograd.gradcheck(convolve, (read[:1], weight))
