"""What is said of a value: losses against the library's, gradients against differences, quantiles against their own
distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import Normal, StudentT

from seqloom.tasks.forecasting.outputs import (
    Bins,
    ForecastHead,
    Gauss,
    Output,
    Point,
    Quantiles,
    Student,
    make_output,
    pinball,
)

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
OUTPUTS: dict[str, Output] = {
    "squared": Point("squared"),
    "absolute": Point("absolute"),
    "quantiles": Quantiles(LEVELS),
    "gauss": Gauss(),
    "student": Student(),
    "bins": Bins(9),
}
each = pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS.keys())


def said(output: Output, *shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, output.size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def values(*shape: int, seed: int = 1) -> Any:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@each
def test_gradients_of_the_loss_are_those_of_differences(output: Output) -> None:
    x = said(output, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: output.loss(p, values(3, 4)), (x,))


@pytest.mark.parametrize("output", [Point(), Quantiles(LEVELS), Gauss(), Bins(9)], ids=lambda o: type(o).__name__)
def test_guesses_have_gradients_for_who_feeds_on_them(output: Output) -> None:
    x = said(output, 3).requires_grad_()
    assert torch.autograd.gradcheck(output.guess, (x,))


@each
def test_losses_stay_finite_far_out(output: Output) -> None:
    far = 1e3 * said(output, 50).float()
    loss = output.loss(far.requires_grad_(), values(50).float())
    loss.sum().backward()
    assert loss.isfinite().all() and far.grad is not None and far.grad.isfinite().all()


def test_likelihoods_are_the_librarys() -> None:
    x, y = said(Student(), 20), values(20)
    spread, freedom = torch.nn.functional.softplus(x[:, 1]) + 1e-4, 2 + torch.nn.functional.softplus(x[:, 2]) + 1e-4
    torch.testing.assert_close(Gauss().loss(x[:, :2], y), -Normal(x[:, 0], spread).log_prob(y))
    torch.testing.assert_close(Student().loss(x, y), -StudentT(freedom, x[:, 0], spread).log_prob(y))
    levels = torch.tensor(LEVELS, dtype=torch.float64)
    wanted = Normal(x[:, :1], spread[:, None]).icdf(levels)
    torch.testing.assert_close(Gauss().quantiles(x[:, :2], LEVELS), wanted)
    theirs = stats.t.ppf(levels.numpy(), freedom[:, None].numpy(), x[:, :1].numpy(), spread[:, None].numpy())
    np.testing.assert_allclose(Student().quantiles(x, LEVELS).numpy(), theirs, rtol=1e-6)


def test_the_pinball_loss_is_least_at_the_quantile() -> None:
    draws = values(20_000)
    for level in LEVELS:
        grid = torch.linspace(-2.5, 2.5, 201, dtype=torch.float64)
        cost = pinball(grid[:, None, None].expand(-1, len(draws), 1), draws.expand(201, -1), [level]).mean((1, 2))
        assert float(grid[cost.argmin()]) == pytest.approx(float(draws.quantile(level)), abs=0.05)


@pytest.mark.parametrize("output", [Quantiles(LEVELS), Gauss(), Student(), Bins(9)], ids=lambda o: type(o).__name__)
def test_draws_follow_the_quantiles_and_lines_never_cross(output: Output) -> None:
    x = said(output, 5)
    lines = output.quantiles(x, LEVELS)
    assert (lines.diff(dim=-1) >= 0).all()
    even = torch.rand(40_000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    draws = output.at(x.expand(40_000, -1, -1), even)
    shares = (draws[..., None] <= lines).double().mean(0)
    torch.testing.assert_close(shares, torch.tensor([LEVELS] * 5, dtype=torch.float64), rtol=0, atol=0.015)


def test_quantiles_at_their_own_levels_are_what_was_said_sorted() -> None:
    x = said(Quantiles(LEVELS), 7)
    torch.testing.assert_close(Quantiles(LEVELS).quantiles(x, LEVELS), x.sort(-1).values)
    torch.testing.assert_close(Quantiles(LEVELS).guess(x), x.sort(-1).values[:, 2])
    assert Quantiles((0.5,)).guess(x[:, :1]).equal(x[:, 0])


def test_a_head_says_something_of_every_target_at_every_step() -> None:
    for kind in ("point", "quantiles", "gauss", "student", "bins"):
        output = make_output(kind, "squared", LEVELS, 9)
        assert ForecastHead(6, 4, 3, output.size)(torch.zeros(2, 5, 6)).shape == (2, 5, 4, 3, output.size)


def test_bins_hold_equal_shares_of_a_normal_distribution() -> None:
    bins = Bins(20)
    counts = torch.bincount(bins.tokens(values(40_000)), minlength=20) / 40_000
    torch.testing.assert_close(counts, torch.full((20,), 0.05), rtol=0, atol=0.006)
    sure = torch.full((20, 20), -50.0, dtype=torch.float64).fill_diagonal_(50.0)
    assert bins.tokens(bins.guess(sure)).tolist() == list(range(20))
    assert bins.tokens(bins.at(sure, torch.full((20,), 0.5, dtype=torch.float64))).tolist() == list(range(20))
