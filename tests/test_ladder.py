"""Curves of score against budget: what they predict holds, and what cannot be told is not told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from seqloom.lab.ladder import Curve, Rung, crossing

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from ladder import coverage, orders

SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)


def rungs(offset: float, scale: float, alpha: float, noise: float = 0.002, seeds: int = 3, seed: int = 0) -> list[Rung]:
    draw = np.random.default_rng(seed)
    return [Rung(1e6 * n, (offset + scale * n**-alpha) * (1 + noise * draw.standard_normal(seeds))) for n in SHARES]


def test_a_power_law_is_continued_and_less_surely_the_farther() -> None:
    predicted = Curve(rungs(1.0, 0.6, 0.4)).predict()
    truth = [1.0 + 0.6 * n**-0.4 for n in (2, 4, 10)]
    assert [point.at for point in predicted] == [2e6, 4e6, 1e7]
    assert all(point.low < value < point.high for point, value in zip(predicted, truth, strict=True))
    assert abs(predicted[0].middle - truth[0]) < 0.03 and abs(predicted[1].middle - truth[1]) < 0.08
    widths = [point.high - point.low for point in predicted]
    assert widths == sorted(widths)


@pytest.mark.parametrize("family", ["power law", "broken power law"])
def test_intervals_hold_on_simulated_curves(family: str) -> None:
    """benchmarks/ladder.py has the table, with more curves."""
    inside = np.array([held for held, _ in coverage(family, 40, seeds=3)])
    assert len(inside) > 30 and (inside.mean(0)[:2] >= 0.87).all()


def test_an_order_that_is_named_is_mostly_right() -> None:
    named = [right for right in orders("power law", 30, seeds=3) if right is not None]
    assert len(named) > 5 and np.mean(named) >= 0.85


def test_scores_of_which_higher_is_better_stay_below_their_ceiling() -> None:
    found = [Rung(rung.at, [1 - loss / 4 for loss in rung.scores]) for rung in rungs(0.2, 0.5, 0.5)]
    predicted = Curve(found, ceiling=1.0).predict()
    assert all(point.low < point.middle < point.high <= 1 for point in predicted)
    assert predicted[-1].middle > np.mean(found[-1].scores)


def test_curves_that_cross_are_seen_to_cross() -> None:
    """A slow learner with the better end passes a quick one: 0.5 n^-0.1 = 0.7 n^-0.55 at 2.1 times the budget."""
    slow, quick = rungs(1.0, 0.7, 0.55, 0.001), rungs(1.0, 0.5, 0.1, 0.001, seed=1)
    found = crossing(Curve(quick), Curve(slow))
    assert found.verdict == "crosses" and found.ahead == "second" and found.now > 0.9 and found.later < 0.1
    assert found.at and found.low and found.high and found.low < found.at < found.high
    assert found.low < 2.1e6 < found.high
    turned = crossing(Curve(slow), Curve(quick))
    assert turned.verdict == "crosses" and turned.ahead == "first"


def test_the_same_curve_twice_cannot_be_told_apart() -> None:
    found = crossing(Curve(rungs(1.0, 0.6, 0.4, 0.005)), Curve(rungs(1.0, 0.6, 0.4, 0.005, seed=5)))
    assert found.verdict == "unclear" and found.ahead is None and found.at is None


def test_a_clear_lead_is_expected_to_stay() -> None:
    found = crossing(Curve(rungs(1.0, 0.6, 0.4)), Curve(rungs(1.6, 0.9, 0.4, seed=1)))
    assert found.verdict == "stays" and found.ahead == "first"


def test_one_seed_is_enough_for_a_curve_but_it_is_less_sure() -> None:
    one, many = (Curve(rungs(1.0, 0.6, 0.4, 0.0005, seeds)).predict()[1] for seeds in (1, 8))
    assert one.high - one.low > many.high - many.low


def test_no_curve_is_fitted_where_there_is_none() -> None:
    good = rungs(1.0, 0.6, 0.4)
    assert Curve(good[:2]).problem == "few"
    assert Curve([Rung(rung.at, other.scores) for rung, other in zip(good, good[::-1], strict=True)]).problem == "worse"
    overfitted = [*good[:3], Rung(1e6, np.asarray(good[2].scores) + 0.2)]
    assert Curve(overfitted).problem == "worse"
    assert Curve([Rung(n, [1.0, 1.0]) for n in SHARES], ceiling=1.0).problem == "perfect"
    assert not Curve(good).problem


def memorising(once: float | None) -> Curve:
    """A training loss that falls as a power law, and a gap that grows by 0.08 with every doubling: the test loss falls
    up to the full budget, and rises beyond twice of it."""
    draw = np.random.default_rng(0)
    found = []
    for n in SHARES:
        training = (1.0 + 0.35 * n**-0.35) * (1 + 0.002 * draw.standard_normal(3))
        found.append(Rung(1e6 * n, training + 0.33 + 0.08 * np.log2(n), training))
    return Curve(found, once=once)


def test_overfitting_that_the_test_scores_do_not_show_yet_is_inside_the_interval() -> None:
    truth = 1.0 + 0.35 * 10**-0.35 + 0.33 + 0.08 * np.log2(10)
    blind, warned = memorising(None).predict()[-1], memorising(5e5).predict()[-1]
    assert blind.high < truth < warned.high
    assert warned.low < blind.middle, "that it goes on as it began stays possible"


def test_data_that_is_read_once_is_not_memorised() -> None:
    blind, later = memorising(None).predict(), memorising(5e6).predict()
    assert [point.high for point in later[:2]] == [point.high for point in blind[:2]]
    assert later[2].high > blind[2].high, "ten million tokens are more than once through the data"
    higher_is_better = [Rung(r.at, [1 - s / 4 for s in r.scores], r.training) for r in memorising(None).rungs]
    assert Curve(higher_is_better, ceiling=1.0, once=0.0).memory is None, "a loss says nothing about an accuracy"
