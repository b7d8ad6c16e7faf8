"""Which differences are called differences: simulated scores, with the truth known."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from seqloom.lab.statistics import compare_pair, holm, interval, seeds_needed, verdicts

pytestmark = pytest.mark.long

MEAN, PIECES = 1.5, 40

# standard deviations as shares of the mean: of a seed, of a piece for one model, of a piece for one model and seed
NOISE = {
    "seeds alone": (0.01, 0.0, 0.0),
    "quiet seeds": (0.002, 0.0, 0.001),
    "noisy seeds": (0.02, 0.0, 0.04),
    "pieces that suit one run": (0.005, 0.0, 0.03),
    "pieces that suit one model": (0.01, 0.01, 0.01),
}


def scores(
    rng: np.random.Generator,
    models: int,
    seeds: int,
    noise: tuple[float, float, float],
    effects: list[float] | None = None,
) -> dict[str, Any]:
    """Models named 0, 1, ... on the same pieces, some of which are hard for all; effects are shares of the mean."""
    seed, suited, run = noise
    hard = rng.normal(0, 0.1, PIECES)
    found = {}
    for model in range(models):
        suits = rng.normal(0, suited, PIECES) + (effects[model] if effects else 0.0)
        suits -= suits.mean() - (effects[model] if effects else 0.0)  # equal models are equal on this text
        noisy = rng.normal(0, seed, (seeds, 1)) + rng.normal(0, run, (seeds, PIECES))
        found[str(model)] = MEAN * (1 + hard + suits + noisy)
    return found


def alarms(seeds: int, noise: tuple[float, float, float], models: int = 2, times: int = 400, seed: int = 0) -> int:
    """How often any of several equal models is called worse than the best."""
    rng = np.random.default_rng(seed)
    rounds = [verdicts(scores(rng, models, seeds, noise), higher_is_better=False) for _ in range(times)]
    return sum(any(verdict.verdict == "worse" for verdict in each.values()) for each in rounds)


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_one_model_under_two_names_is_a_tie(seeds: int, noise: tuple[float, float, float]) -> None:
    assert alarms(seeds, noise, times=20, seed=1) <= 1
    assert alarms(seeds, noise, times=400) <= 8


@pytest.mark.parametrize("models", [4, 8])
@pytest.mark.parametrize("seeds", [2, 5])
def test_many_names_for_one_model_are_a_tie(models: int, seeds: int) -> None:
    for noise in NOISE.values():
        assert alarms(seeds, noise, models, times=100) <= 4


@pytest.mark.parametrize("models", [2, 5])
@pytest.mark.parametrize("noise", [noise for noise in NOISE.values() if noise[0] <= 0.01], ids=str)
def test_five_seeds_tell_a_model_that_is_five_percent_worse(models: int, noise: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(3)
    effects = [0.05] + [0.0] * (models - 1)
    found = [verdicts(scores(rng, models, 5, noise, effects), higher_is_better=False) for _ in range(20)]
    assert sum(each["0"].verdict == "worse" for each in found) >= 18


def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says() -> None:
    rng, truth = np.random.default_rng(4), 0.02 * MEAN
    covered = 0
    for _ in range(400):
        two = scores(rng, 2, 4, NOISE["seeds alone"], [0.02, 0.0])
        pair = compare_pair(two["0"], two["1"])
        assert pair.low is not None and pair.high is not None
        covered += pair.low <= truth <= pair.high
    assert covered >= 0.93 * 400


def test_without_noise_of_pieces_the_comparison_is_welchs_test() -> None:
    a, b = [1.50, 1.53, 1.49, 1.52], [1.40, 1.41, 1.47, 1.43]
    pair = compare_pair([[x] * 5 for x in a], [[x] * 5 for x in b])
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert pair.p == pytest.approx(welch.pvalue)
    assert (pair.low, pair.high) == pytest.approx(tuple(welch.confidence_interval(0.95)))


def test_without_noise_of_seeds_the_comparison_is_a_paired_test_over_pieces() -> None:
    a, b = [1.5, 1.7, 1.2, 1.9, 1.6], [1.45, 1.6, 1.22, 1.8, 1.5]
    assert compare_pair([a, a, a], [b, b]).p == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_seeds_that_happen_to_agree_do_not_make_the_many_pieces_speak_for_them() -> None:
    rng = np.random.default_rng(5)
    agree = [rng.normal(1.5, 0.01, 50) for _ in range(4)]
    pair = compare_pair(agree[:2], [piece + 0.012 for piece in agree[2:]])
    assert pair.p is not None and pair.p > 0.01


def test_an_interval_is_students_over_seeds() -> None:
    found = interval([1.0, 1.1, 1.3])
    error = float(np.std([1.0, 1.1, 1.3], ddof=1)) / math.sqrt(3)
    assert (found.mean, found.seeds) == (pytest.approx(3.4 / 3), 3)
    assert found.high == pytest.approx(3.4 / 3 + 4.3026527 * error)
    assert found.low == pytest.approx(3.4 / 3 - 4.3026527 * error)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    found = interval([1.5])
    assert (found.mean, found.low, found.high) == (1.5, None, None)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 5), (5, 1)])
def test_with_one_seed_on_either_side_nothing_is_clear(first: int, second: int) -> None:
    found = verdicts({"a": [[1.0, 1.1]] * first, "b": [[2.0, 2.3]] * second}, higher_is_better=False)
    assert found["a"].verdict == "best"
    assert (found["b"].verdict, found["b"].p, found["b"].low) == ("unclear", None, None)
    assert found["b"].difference == pytest.approx(1.1)


def test_models_without_any_variance_tie_when_identical_and_differ_when_not() -> None:
    entries = {"a": [[0.1] * 7] * 3, "same": [[0.1] * 7] * 3, "other": [[0.3] * 7] * 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = verdicts(entries, higher_is_better=False)
    assert (found["same"].verdict, found["same"].difference, found["same"].p) == ("tie", 0.0, 1.0)
    assert (found["other"].verdict, found["other"].p) == ("worse", 0.0)
    assert found["other"].low == found["other"].high == pytest.approx(0.2)


def test_rounding_is_no_difference() -> None:
    one, other = [[0.1 + 0.2, 0.7]] * 3, [[0.3, 0.7]] * 3
    assert verdicts({"a": one, "b": other}, higher_is_better=True)["a"].verdict in ("best", "tie")
    assert compare_pair(one, other).p == 1.0


@pytest.mark.parametrize("higher", [True, False])
def test_a_difference_says_how_much_worse_whichever_way_the_metric_goes(higher: bool) -> None:
    entries = {"high": [[0.90, 0.92], [0.91, 0.93], [0.90, 0.93]], "low": [[0.50, 0.52], [0.51, 0.53], [0.50, 0.51]]}
    found = verdicts(entries, higher)
    best, other = ("high", "low") if higher else ("low", "high")
    assert (found[best].verdict, found[best].difference) == ("best", 0.0)
    assert found[other].verdict == "worse"
    low, difference, high = found[other].low, found[other].difference, found[other].high
    assert low is not None and difference is not None and high is not None
    assert 0 < low < difference < high and difference == pytest.approx(0.4, abs=0.01)


def test_a_score_that_is_no_number_is_unclear_and_never_the_best() -> None:
    good = [[1.0, 1.1], [1.0, 1.2]]
    found = verdicts({"nan": [[math.nan, 0.1]] * 2, "inf": [[-math.inf, 1.0]] * 2, "good": good}, False)
    assert {name: each.verdict for name, each in found.items()} == {"nan": "unclear", "inf": "unclear", "good": "best"}


def test_one_model_alone_is_the_best_and_none_is_no_one() -> None:
    assert verdicts({"only": [[1.0, 2.0]]}, False)["only"].verdict == "best"
    assert verdicts({}, False) == {}


def test_holm_multiplies_the_smallest_by_the_most_and_keeps_the_order() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_the_seeds_asked_for_do_separate_and_a_third_of_them_seldom_does() -> None:
    rng, noise, effects = np.random.default_rng(6), (0.01, 0.0, 0.01), [0.015, 0.0]
    wanted = [seeds_needed(*scores(rng, 2, 40, noise, effects).values()) for _ in range(20)]
    count = int(np.median([number for number in wanted if number]))
    assert 8 < count < 25

    def separated(seeds: int) -> int:
        rounds = [verdicts(scores(rng, 2, seeds, noise, effects), False) for _ in range(50)]
        return sum(each["0"].verdict == "worse" for each in rounds)

    assert separated(count) >= 35
    assert separated(count // 3) <= 25


def test_more_comparisons_need_more_seeds() -> None:
    two = scores(np.random.default_rng(7), 2, 5, (0.01, 0.0, 0.01), [0.02, 0.0])
    once, often = (seeds_needed(two["0"], two["1"], comparisons=count) for count in (1, 10))
    assert once is not None and often is not None and once < often


def test_no_number_of_seeds_separates_equal_models_or_what_the_pieces_leave_open() -> None:
    same = [[1.0, 1.2, 1.1], [1.1, 1.2, 1.1]]
    assert seeds_needed(same, same) is None
    pieces = np.random.default_rng(8).normal(0, 0.2, 20)
    one = np.array([[1.5] * 20] * 4) + np.array([[0.0], [0.01], [0.02], [0.01]])
    assert seeds_needed(one, one + pieces - pieces.mean() + 0.02) is None
    assert seeds_needed(one[:1], one) is None


def test_scores_on_other_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="same pieces"):
        compare_pair([[1.0, 2.0]] * 2, [[1.0, 2.0, 3.0]] * 2)
    with pytest.raises(ValueError):
        compare_pair([[1.0, 2.0], [1.0]], [[1.0, 2.0]] * 2)


def test_neighbouring_pieces_that_are_alike_make_no_difference_between_equal_models() -> None:
    """What suits a model changes slowly along a text; equal models are equal over all texts, not on this one."""
    rng, alarmed = np.random.default_rng(7), 0
    for _ in range(400):
        entries = {}
        for name in ("a", "b"):
            drift = np.zeros(PIECES)
            for n in range(1, PIECES):
                drift[n] = 0.55 * drift[n - 1] + rng.normal(0, 0.01)
            entries[name] = MEAN * (1 + drift + rng.normal(0, 0.0005, (5, 1)) + rng.normal(0, 0.002, (5, PIECES)))
        alarmed += any(v.verdict == "worse" for v in verdicts(entries, higher_is_better=False).values())
    assert alarmed <= 12
