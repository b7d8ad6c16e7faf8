"""Which differences are called differences: simulated scores, with the truth known."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from seqloom.lab.power import seeds_needed
from seqloom.lab.scales import interval_on_scale
from seqloom.lab.selection import noise_variances, tuning_variances
from seqloom.lab.spending import LEVEL, level_at
from seqloom.lab.statistics import Sample, Verdict, difference, interval, per_pair, score_interval, verdicts

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import verdicts as benchmark  # the simulation itself, in studies of a larger number

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
) -> dict[str, Sample]:
    """Models named 0, 1, ... on the same pieces, some of which are hard for all; effects are shares of the mean."""
    seed, suited, run = noise
    hard = rng.normal(0, 0.1, PIECES)
    found = {}
    for model in range(models):
        suits = rng.normal(0, suited, PIECES) + (effects[model] if effects else 0.0)
        suits -= suits.mean() - (effects[model] if effects else 0.0)  # equal models are equal on this text
        noisy = rng.normal(0, seed, (seeds, 1)) + rng.normal(0, run, (seeds, PIECES))
        found[str(model)] = Sample.of(MEAN * (1 + hard + suits + noisy))
    return found


def judge(entries: Mapping[str, Any], higher: bool = False, **more: Any) -> dict[str, Verdict]:
    found = {n: each if isinstance(each, Sample) else Sample.of(each) for n, each in entries.items()}
    return verdicts(found, higher, **more)


def standings(found: Mapping[str, Verdict]) -> dict[str, str]:
    return {name: verdict.verdict for name, verdict in found.items()}


def alarms(seeds: int, noise: tuple[float, float, float], models: int = 2, times: int = 200, seed: int = 0) -> int:
    """How often any of several equal models is called worse than the best."""
    rng = np.random.default_rng(seed)
    rounds = [judge(scores(rng, models, seeds, noise), level=level_at(1)) for _ in range(times)]
    return sum("worse" in standings(each).values() for each in rounds)


# equal models


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_one_model_under_two_names_is_not_worse_than_itself(seeds: int, noise: tuple[float, float, float]) -> None:
    assert alarms(seeds, noise, times=20, seed=1) <= 1
    assert alarms(seeds, noise) <= 15  # 1.5 times the nominal rate of all looks


@pytest.mark.parametrize("models", [4, 8])
@pytest.mark.parametrize("seeds", [2, 5])
def test_many_names_for_one_model_are_not_worse_than_each_other(models: int, seeds: int) -> None:
    for noise in NOISE.values():
        assert alarms(seeds, noise, models, times=50) <= 4


@pytest.mark.parametrize("world", benchmark.WORLDS)
def test_false_alarms_are_rare_even_with_noisy_searches_and_when_seeds_are_added(world: str) -> None:
    """At most 1.5 times the nominal 5 %, with room for the chance of so few studies."""
    found = benchmark._cell(benchmark.WORLDS[world], 3, 3, 60)
    assert found["false alarm"] <= 0.12
    assert found["scores"] >= 0.91 and found["differences"] >= 0.88
    assert benchmark._growing(benchmark.WORLDS[world], 3, 30) <= 0.14


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
        alarmed += "worse" in standings(judge(entries, level=level_at(1))).values()
    assert alarmed <= 2.5 * level_at(1) * 400


# different models


@pytest.mark.parametrize("models", [2, 5])
@pytest.mark.parametrize("noise", [noise for noise in NOISE.values() if noise[0] <= 0.01], ids=str)
def test_five_seeds_tell_a_model_that_is_five_percent_worse(models: int, noise: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(3)
    effects = [0.05] + [0.0] * (models - 1)
    found = [judge(scores(rng, models, 5, noise, effects), level=level_at(1)) for _ in range(20)]
    assert sum(each["0"].verdict == "worse" for each in found) >= 18


@pytest.mark.parametrize("models", [2, 5])
def test_a_model_that_is_five_percent_better_is_told_from_all_others(models: int) -> None:
    assert benchmark._power(models, 40) >= 0.9


def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says() -> None:
    rng, truth = np.random.default_rng(4), 0.02 * MEAN
    covered = 0
    for _ in range(400):
        two = scores(rng, 2, 4, NOISE["seeds alone"], [0.02, 0.0])
        gap, error = difference(two["0"], two["1"])
        covered += abs(gap - truth) <= error.reach(0.05)
    assert covered >= 0.93 * 400


def test_without_noise_of_pieces_the_comparison_is_welchs_test() -> None:
    a, b = [1.50, 1.53, 1.49, 1.52], [1.40, 1.41, 1.47, 1.43]
    gap, error = difference(Sample.of([[x] * 5 for x in a]), Sample.of([[x] * 5 for x in b]))
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert error.chance(gap) == pytest.approx(welch.pvalue)
    reach = error.reach(0.05)
    assert (gap - reach, gap + reach) == pytest.approx(tuple(welch.confidence_interval(0.95)))


def test_without_noise_of_seeds_the_comparison_is_a_paired_test_over_pieces() -> None:
    a, b = [1.5, 1.7, 1.2, 1.9, 1.6], [1.45, 1.6, 1.22, 1.8, 1.5]
    gap, error = difference(Sample.of([a, a, a]), Sample.of([b, b]))
    assert error.chance(gap) == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_seeds_that_happen_to_agree_do_not_make_the_many_pieces_speak_for_them() -> None:
    rng = np.random.default_rng(5)
    agree = [rng.normal(1.5, 0.01, 50) for _ in range(4)]
    gap, error = difference(Sample.of(agree[:2]), Sample.of([piece + 0.012 for piece in agree[2:]]))
    for level in (0.05, 0.01, 0.001):
        alone = [-stats.t.ppf(level / 2, freedom) * math.sqrt(v) for v, freedom in (error.luck, error.pieces)]
        assert error.reach(level) > max(alone)
    pooled = stats.ttest_ind(np.concatenate(agree[:2]), np.concatenate(agree[2:]) + 0.012).pvalue
    assert error.chance(gap) > 1000 * pooled


def test_the_luck_of_tuning_makes_a_difference_less_certain_and_seeds_do_not_buy_it_off() -> None:
    rng, effects = np.random.default_rng(9), [0.02, 0.0]
    for seeds in (3, 30):
        plain = scores(rng, 2, seeds, (0.002, 0.0, 0.001), effects)
        tuned = {name: replace(sample, tuning=0.02**2, trials=8) for name, sample in plain.items()}
        assert standings(judge(plain))["0"] == "worse" and standings(judge(tuned))["0"] == "unclear"


# verdicts


SEEN = {
    0.0: {"worse", "unclear"},
    0.005: {"worse", "unclear", "equivalent"},
    0.03: {"worse", "unclear", "equivalent"},
    1.0: {"equivalent"},
}


@pytest.mark.parametrize("margin", SEEN)
def test_a_verdict_and_its_interval_always_agree(margin: float) -> None:
    rng, seen = np.random.default_rng(11), set()
    for _ in range(60):
        models, seeds = int(rng.integers(2, 6)), int(rng.integers(2, 6))
        effects = list(rng.choice([0.0, 0.001, 0.01, 0.05], models))
        found = judge(scores(rng, models, seeds, NOISE["quiet seeds"], effects), margin=margin, level=level_at(1))
        assert list(standings(found).values()).count("best") == 1
        for each in found.values():
            assert each.low is not None and each.high is not None and each.difference is not None
            assert each.low <= each.difference <= each.high
            if each.verdict == "best":
                assert each.difference <= 0
                continue
            seen.add(each.verdict)
            assert (each.verdict == "equivalent") == (each.high < margin)
            assert (each.verdict == "worse") == (each.low > 0 and each.high >= margin)
            assert each.difference >= 0
            if each.p is not None and each.verdict == "worse":
                assert each.p <= level_at(1) + 1e-9
    assert seen == SEEN[margin]


def test_names_and_order_of_the_entries_change_nothing() -> None:
    found = scores(np.random.default_rng(12), 4, 4, NOISE["noisy seeds"], [0.0, 0.01, 0.05, 0.002])
    before = judge(found, margin=0.01)
    renamed = judge({f"model-{name}": sample for name, sample in found.items()}, margin=0.01)
    turned = judge(dict(reversed(found.items())), margin=0.01)
    assert {f"model-{name}": each for name, each in before.items()} == renamed
    assert before == turned


def test_negated_scores_with_the_other_direction_give_the_same_verdicts() -> None:
    found = scores(np.random.default_rng(13), 4, 4, NOISE["noisy seeds"], [0.0, 0.01, 0.05, 0.002])
    negated = {name: replace(sample, scores=-sample.scores) for name, sample in found.items()}
    assert judge(found, margin=0.01) == judge(negated, higher=True, margin=0.01)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 5), (5, 1)])
def test_with_one_seed_on_either_side_nothing_is_clear(first: int, second: int) -> None:
    found = judge({"a": [[1.0, 1.1]] * first, "b": [[2.0, 2.3]] * second}, margin=5.0)
    assert found["a"].verdict == "best"
    assert (found["b"].verdict, found["b"].p, found["b"].low) == ("unclear", None, None)
    assert found["b"].difference == pytest.approx(1.1)


def test_a_model_that_depends_on_no_seed_is_tested_with_its_one_run() -> None:
    rng = np.random.default_rng(14)
    hard = rng.normal(0, 0.1, PIECES)
    counted = Sample.of(1.6 + hard[None] + rng.normal(0, 0.01, (1, PIECES)), fixed=True)
    trained = Sample.of(1.5 + hard + rng.normal(0, 0.01, (5, PIECES)))
    assert counted.testable and standings(judge({"lstm": trained, "ngram": counted})) == {
        "lstm": "best", "ngram": "worse",
    }  # fmt: skip
    assert standings(judge({"lstm": trained, "ngram": replace(counted, fixed=False)}))["ngram"] == "unclear"
    assert not Sample.of([[1.6]], fixed=True).testable
    found = score_interval(counted)
    assert found.low is not None and found.high is not None and found.low < 1.6 < found.high


def test_beside_a_better_model_with_one_seed_nothing_is_equivalent_to_the_best() -> None:
    rng = np.random.default_rng(15)
    hard = rng.normal(0, 0.1, PIECES)
    lstm = Sample.of(1.0 + hard[None])
    good, bad = (Sample.of(mean + hard[None] + rng.normal(0, 0.01, (1, PIECES)), fixed=True) for mean in (1.5, 1.9))
    found = judge({"lstm": lstm, "good": good, "bad": bad}, margin=0.01)
    assert standings(found) == {"lstm": "best", "good": "unclear", "bad": "worse"}
    assert found["good"].difference == pytest.approx(0.5, abs=0.01) and found["good"].high is None
    assert found["bad"].low is not None and 0 < found["bad"].low < 0.4 and found["bad"].high is None


def test_models_without_any_variance_are_equivalent_when_identical_and_differ_when_not() -> None:
    entries = {"a": [[0.1] * 7] * 3, "same": [[0.1] * 7] * 3, "other": [[0.3] * 7] * 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judge(entries, margin=0.001)
    assert (found["same"].verdict, found["same"].difference, found["same"].p) == ("equivalent", 0.0, pytest.approx(1))
    assert (found["other"].verdict, found["other"].p) == ("worse", 0.0)
    assert found["other"].low == found["other"].high == pytest.approx(0.2)


def test_rounding_is_no_difference() -> None:
    one, other = Sample.of([[0.1 + 0.2, 0.7]] * 3), Sample.of([[0.3, 0.7]] * 3)
    assert standings(judge({"a": one, "b": other}, higher=True, margin=1e-9))["b"] in ("best", "equivalent")
    gap, error = difference(one, other)
    assert gap == 0.0 and error.chance(gap) == 1.0


@pytest.mark.parametrize("higher", [True, False])
def test_a_difference_says_how_much_worse_whichever_way_the_metric_goes(higher: bool) -> None:
    entries = {"high": [[0.90, 0.92], [0.91, 0.93], [0.90, 0.93]], "low": [[0.50, 0.52], [0.51, 0.53], [0.50, 0.51]]}
    found = judge(entries, higher)
    best, other = ("high", "low") if higher else ("low", "high")
    assert found[best].verdict == "best" and found[best].difference == pytest.approx(-0.4, abs=0.01)
    assert found[other].verdict == "worse"
    low, gap, high = found[other].low, found[other].difference, found[other].high
    assert low is not None and gap is not None and high is not None
    assert 0 < low < gap < high and gap == pytest.approx(0.4, abs=0.01)


def test_a_score_that_is_no_number_is_unclear_and_never_the_best() -> None:
    good = [[1.0, 1.1], [1.0, 1.2]]
    found = judge({"nan": [[math.nan, 0.1]] * 2, "inf": [[-math.inf, 1.0]] * 2, "good": good})
    assert standings(found) == {"nan": "unclear", "inf": "unclear", "good": "best"}
    beside = judge({"nan": [[math.nan, 0.1]] * 2, "good": good, "bad": [[2.0, 2.1], [2.0, 2.2]]})
    assert standings(beside) == {"nan": "unclear", "good": "best", "bad": "worse"}


def test_one_model_alone_is_the_best_and_none_is_no_one() -> None:
    assert judge({"only": [[1.0, 2.0]]})["only"].verdict == "best"
    assert judge({}) == {}


def test_the_level_of_one_pair_holds_for_all_pairs_together() -> None:
    for models in (2, 3, 8):
        pairs = models * (models - 1) // 2
        assert 1 - (1 - per_pair(0.05, models)) ** pairs == pytest.approx(0.05)


def test_scores_on_other_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="same pieces"):
        difference(Sample.of([[1.0, 2.0]] * 2), Sample.of([[1.0, 2.0, 3.0]] * 2))
    with pytest.raises(ValueError):
        Sample.of([[1.0, 2.0], [1.0]])
    with pytest.raises(ValueError, match="list over seeds"):
        Sample.of([])


# intervals


def test_an_interval_is_students_over_seeds() -> None:
    found = interval([1.0, 1.1, 1.3])
    error = float(np.std([1.0, 1.1, 1.3], ddof=1)) / math.sqrt(3)
    assert (found.mean, found.seeds) == (pytest.approx(3.4 / 3), 3)
    assert found.high == pytest.approx(3.4 / 3 + 4.3026527 * error)
    assert found.low == pytest.approx(3.4 / 3 - 4.3026527 * error)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    found = interval([1.5])
    assert (found.mean, found.low, found.high) == (1.5, None, None)


BOUNDED = [[0.2, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.001], [0.999, 1.0]]


@pytest.mark.parametrize("values", BOUNDED, ids=str)
def test_no_interval_leaves_what_is_possible(values: list[float]) -> None:
    found = interval(values, bounds=(0.0, 1.0))
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= 1
    loss = interval(values, bounds=(0.0, None))
    assert loss.low is not None and loss.high is not None and 0 <= loss.low <= loss.mean <= loss.high
    other = interval([1 - value for value in values], bounds=(0.0, 1.0))
    assert (other.low, other.high) == pytest.approx((1 - found.high, 1 - found.low))


def test_no_distance_exceeds_the_range_of_the_score() -> None:
    found = judge({"a": [[0.2], [1.0]], "b": [[0.1], [0.9]]}, higher=True, bounds=(0.0, 1.0))
    assert all(each.low is not None and each.low >= -1 for each in found.values())
    assert all(each.high is not None and each.high <= 1 for each in found.values())


@pytest.mark.parametrize("bounds", [(None, None), (0.0, None), (None, 1.0), (0.0, 1.0)], ids=str)
def test_a_longer_reach_and_a_higher_mean_move_the_ends_of_an_interval_the_right_way(bounds: Any) -> None:
    means, reaches = (0.05, 0.3, 0.5, 0.9), (0.0, 0.01, 0.2, 3.0)
    for mean in means:
        lows, highs = zip(*(interval_on_scale(mean, reach, bounds) for reach in reaches), strict=True)
        assert list(lows) == sorted(lows, reverse=True) and list(highs) == sorted(highs)
        assert lows[0] == highs[0] == pytest.approx(mean)
    for reach in (0.001, 0.01):
        ends = [interval_on_scale(mean, reach, bounds) for mean in means]
        assert ends == sorted(ends) and [high for _, high in ends] == sorted(high for _, high in ends)
    low, high = interval_on_scale(0.5, 0.001, bounds)
    assert (low, high) == pytest.approx((0.499, 0.501), abs=1e-4)  # a short interval is symmetric


# the luck of tuning


def test_a_search_with_a_clear_winner_adds_no_variance_and_one_with_close_trials_does() -> None:
    noise = [1e-4]
    assert tuning_variances([[1.0, 2.0, 3.0]], noise, lower=True) == [0.0]
    assert tuning_variances([[1.0, 2.0, 3.0]], noise, lower=False) == [0.0]
    assert tuning_variances([[1.0, 1.02, 1.03, 1.5]], noise, lower=True)[0] > 1e-6
    assert tuning_variances([[1.0, 1.02]], [0.0], lower=True) == [0.0]  # seeds that never differ
    assert tuning_variances([[], [1.0]], [1e-4, 1e-4], lower=True) == [0.0, 0.0]  # no search, no luck
    assert tuning_variances([[1.0, math.nan, 2.0]], noise, lower=True) == [0.0]


def test_the_winner_of_a_lucky_search_is_not_taken_for_certain_beside_noisy_ones() -> None:
    noises = [1e-4] * 3
    lucky, *_ = tuning_variances([[1.0, 2.0, 3.0], [1.0, 1.02, 1.03], [1.0, 1.01, 1.03]], noises, lower=True)
    assert lucky > 0


def test_the_direction_of_the_score_turns_the_search_round() -> None:
    trials, noise = [0.5, 0.48, 0.47, 0.1], [1e-4]
    assert tuning_variances([[-t for t in trials]], noise, lower=True) == tuning_variances([trials], noise, lower=False)


def test_the_noise_of_a_model_with_few_seeds_is_drawn_towards_that_of_all() -> None:
    calm, wild = noise_variances([[1.0, 1.0, 1.0], [1.0, 1.2, 0.8]])
    assert 0 < calm < wild < float(np.var([1.0, 1.2, 0.8], ddof=1))
    assert noise_variances([[1.0], [2.0]]) == [0.0, 0.0] and noise_variances([]) == []


# looks, and what more seeds would show


def test_all_looks_together_spend_no_more_than_the_level() -> None:
    for level in (0.05, 0.2):
        spent = np.cumsum([level_at(look, level) for look in range(1, 60)])
        assert spent[0] == pytest.approx(0.8 * level) and (spent <= level + 1e-12).all()
    levels = [level_at(look) for look in range(1, 10)]
    assert levels == sorted(levels, reverse=True) and levels[-1] > 0 and sum(levels) <= LEVEL
    with pytest.raises(ValueError, match="counted from 1"):
        level_at(0)


def test_the_seeds_asked_for_do_separate_and_a_third_of_them_seldom_does() -> None:
    rng, noise, effects = np.random.default_rng(6), (0.01, 0.0, 0.01), [0.015, 0.0]
    level = level_at(2)
    wanted = [seeds_needed(*scores(rng, 2, 40, noise, effects).values(), 2, level).seeds for _ in range(20)]
    count = int(np.median([number for number in wanted if number]))
    assert 8 < count < 40

    def separated(seeds: int) -> int:
        rounds = [judge(scores(rng, 2, seeds, noise, effects), level=level) for _ in range(50)]
        return sum(each["0"].verdict == "worse" for each in rounds)

    assert separated(count) >= 35
    assert separated(count // 3) <= 25


def test_more_models_need_more_seeds() -> None:
    two = scores(np.random.default_rng(7), 2, 5, (0.01, 0.0, 0.01), [0.02, 0.0])
    once, often = (seeds_needed(two["0"], two["1"], models, 0.05).seeds for models in (2, 6))
    assert once is not None and often is not None and once < often


def test_where_no_number_of_seeds_is_enough_the_reason_is_named() -> None:
    same = Sample.of([[1.0, 1.2, 1.1], [1.1, 1.2, 1.1]])
    assert (seeds_needed(same, same, 2, 0.05).seeds, seeds_needed(same, same, 2, 0.05).limit) == (None, "difference")
    pieces = np.random.default_rng(8).normal(0, 0.2, 20)
    one = np.array([[1.5] * 20] * 4) + np.array([[0.0], [0.01], [0.02], [0.01]])
    other = Sample.of(one + pieces - pieces.mean() + 0.02)
    assert seeds_needed(Sample.of(one), other, 2, 0.05).limit == "pieces"
    tuned = Sample.of(one, tuning=0.1, trials=8)
    assert seeds_needed(tuned, Sample.of(one + 0.02), 2, 0.05).limit == "tuning"
    fixed = [replace(sample, scores=sample.scores[:1], fixed=True) for sample in (Sample.of(one), other)]
    assert seeds_needed(*fixed, 2, 0.05).limit == "fixed"
