"""Ranks over data sets, against scipy and by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from seqloom.lab import ranks


def table(rows: int, columns: int, seed: int = 0, decimals: int | None = None) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(rows, columns)) + 0.3 * np.arange(columns)
    return found if decimals is None else found.round(decimals)


def test_the_best_has_rank_one_in_either_direction_and_ties_share() -> None:
    scores = np.array([[0.5, 0.7, 0.5], [0.5, 0.7, 0.5]])
    assert ranks.ranks(scores, [False, True]).tolist() == [[1.5, 3.0, 1.5], [2.5, 1.0, 2.5]]


@pytest.mark.parametrize("decimals", [None, 0])
def test_the_friedman_test_is_that_of_scipy_also_with_ties(decimals: int | None) -> None:
    for seed in range(10):
        scores = table(9, 4, seed, decimals)
        expected = stats.friedmanchisquare(*scores.T).pvalue
        assert ranks.friedman(ranks.ranks(scores, [False] * 9)) == pytest.approx(expected)


def test_models_that_share_all_ranks_do_not_differ() -> None:
    assert ranks.friedman(np.full((5, 3), 2.0)) == 1.0


@pytest.mark.parametrize("count", [5, 8, 12])
def test_the_signed_rank_test_is_the_exact_one_of_scipy(count: int) -> None:
    for seed in range(10):
        differences = table(count, 1, seed)[:, 0]
        p, _ = ranks.signed_rank(differences)
        assert p == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)


def test_with_ties_and_zeros_it_counts_all_signs() -> None:
    differences = np.array([1.0, 1.0, -1.0, 0.0, 2.0, 3.0, 3.0])
    weights = stats.rankdata(np.abs(differences))[differences != 0]
    seen = weights[differences[differences != 0] > 0].sum()
    sums = np.array([np.dot(signs, weights) for signs in product((0, 1), repeat=len(weights))])
    p, surplus = ranks.signed_rank(differences)
    assert p == pytest.approx(min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))) and surplus > 0
    assert ranks.signed_rank([0.0, 0.0]) == (1.0, 0.0)


@pytest.mark.parametrize("pairs", [1, 3, 10])
def test_no_difference_can_be_found_with_fewer_data_sets_than_needed(pairs: int) -> None:
    needed = ranks.rows_needed(pairs, 0.05)
    assert ranks.smallest_p(needed, pairs) < 0.05 <= ranks.smallest_p(needed - 1, pairs)
    assert ranks.smallest_p(6, 1) == pytest.approx(ranks.signed_rank([1, 2, 3, 4, 5, 6])[0])


def test_pairs_are_corrected_and_say_which_is_better() -> None:
    scores = np.stack([np.arange(8) / 100, np.arange(8) / 100 + 1, np.arange(8) / 100 + 2], axis=1)
    found = ranks.pairs(scores)
    assert [(pair.first, pair.second, pair.better) for pair in found] == [(0, 1, 0), (0, 2, 0), (1, 2, 1)]
    assert [pair.p for pair in found] == pytest.approx([3 * 2**-7] * 3)
    assert ranks.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_random_models_are_rarely_called_different() -> None:
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(400):
        alarms += min(pair.p for pair in ranks.pairs(rng.standard_t(2, size=(10, 4)))) < 0.05
    assert alarms <= 0.05 * 400


def test_the_critical_difference_is_that_of_the_paper() -> None:
    """Demšar 2006: q is 2.569 for four models and 1.960 for two."""
    assert ranks.critical_difference(14, 4, 0.05) == pytest.approx(2.569 * math.sqrt(20 / 84), rel=1e-3)
    assert ranks.critical_difference(6, 2, 0.05) == pytest.approx(1.960 * math.sqrt(6 / 36), rel=1e-3)


def test_groups_are_the_longest_runs_without_a_difference() -> None:
    different = {frozenset(pair) for pair in [(0, 3), (1, 3)]}
    assert ranks.groups([0, 1, 2, 3], different) == [[0, 1, 2], [2, 3]]
    assert ranks.groups([0, 1], {frozenset((0, 1))}) == []


def test_the_mean_ratio_has_an_interval_that_stays_possible() -> None:
    found = ranks.mean_ratio(np.log([0.5, 0.02, 0.9]), 0.95)
    assert found.mean == pytest.approx((0.5 * 0.02 * 0.9) ** (1 / 3) - 1)
    assert found.low is not None and found.high is not None and -1 < found.low < found.mean < found.high
    assert ranks.mean_ratio(np.log([1.1]), 0.95) == ranks.Mean(pytest.approx(0.1), None, None)
