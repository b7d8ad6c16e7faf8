"""Several models over several data sets: ranks, and which of them differ (Demšar, JMLR 2006).

A table has one row per data set and one column per model, and the data sets are the unit: one score each. The Friedman
test asks whether the models differ at all. Pairs are then tested by the signed-rank test of Wilcoxon, corrected for
the number of pairs (Holm): unlike differences of mean ranks (Nemenyi), its verdict on two models does not depend on
the others (Benavoli, Corani and Mangili, JMLR 2016). The signed-rank test is exact, so few data sets are no excuse for
a small p-value: n of them never give less than 2 / 2^n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Pair:
    """Two columns of the table; `p` is corrected for the number of pairs."""

    first: int
    second: int
    better: int | None  # which of them the signed ranks favour; None: neither
    p: float


@dataclass(frozen=True)
class Mean:
    mean: float
    low: float | None  # None with one data set
    high: float | None


def ranks(scores: np.ndarray, higher_is_better: Sequence[bool]) -> np.ndarray:
    """1 is the best of a row; equal scores share the mean of their ranks. One direction per row."""
    sign = np.where(higher_is_better, -1.0, 1.0)
    found: np.ndarray = stats.rankdata(sign[:, None] * scores, axis=1)
    return found


def friedman(ranks: np.ndarray) -> float:
    """p-value of the Friedman test, with the correction for ties; 1 if all models share all ranks."""
    rows, columns = ranks.shape
    squares = (ranks**2).sum() - rows * columns * (columns + 1) ** 2 / 4
    if squares <= 0:
        return 1.0
    between = ((ranks.sum(axis=0) - rows * (columns + 1) / 2) ** 2).sum()
    return float(stats.chi2.sf((columns - 1) * between / squares, columns - 1))


def signed_rank(differences: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Exact two-sided p-value of the signed-rank test, and the surplus of positive ranks. Zeros take their ranks but
    count for neither side (Pratt); the null distribution is over all signs, so ties are no approximation."""
    given = np.asarray(differences, dtype=float)
    doubled = np.rint(2 * stats.rankdata(np.abs(given))).astype(int)[given != 0]  # whole numbers also with ties
    positive, total = int(doubled[given[given != 0] > 0].sum()), int(doubled.sum())
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: total + 1 - rank]
        chances = (chances + moved) / 2
    side = min(chances[: positive + 1].sum(), chances[positive:].sum())
    return float(min(1.0, 2 * side)), positive - total / 2


def pairs(differences: np.ndarray) -> list[Pair]:
    """Every two columns; `differences`: a table in which lower is better, and rows are comparable."""
    every = list(combinations(range(differences.shape[1]), 2))
    tested = [signed_rank(differences[:, second] - differences[:, first]) for first, second in every]
    corrected = holm([p for p, _ in tested])
    return [
        Pair(first, second, first if surplus > 0 else second if surplus < 0 else None, p)
        for (first, second), (_, surplus), p in zip(every, tested, corrected, strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    corrected, highest = [0.0] * len(p_values), 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - done)))
        corrected[place] = highest
    return corrected


def smallest_p(rows: int, pairs: int) -> float:
    """What a corrected p-value is at least, if one model is better than another on all data sets."""
    return min(1.0, pairs * 2.0 ** (1 - rows))


def rows_needed(pairs: int, level: float) -> int:
    """The fewest data sets with which any difference could be found."""
    return math.floor(1 + math.log2(pairs / level)) + 1


def critical_difference(rows: int, columns: int, level: float) -> float:
    """Nemenyi: mean ranks further apart than this differ."""
    q = stats.studentized_range.ppf(1 - level, columns, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(columns * (columns + 1) / (6 * rows)))


def groups(order: Sequence[int], different: set[frozenset[int]]) -> list[list[int]]:
    """Longest runs of neighbours in `order` without a pair that is different; a run inside another is left out."""
    found: list[list[int]] = []
    for start in range(len(order)):
        run = [order[start]]
        for other in order[start + 1 :]:
            if any(frozenset((other, inside)) in different for inside in run):
                break
            run.append(other)
        if len(run) > 1 and not any(set(run) <= set(longer) for longer in found):
            found.append(run)
    return found


def mean_ratio(logs: np.ndarray, confidence: float) -> Mean:
    """Geometric mean of ratios, less one, with an interval over data sets; `logs`: logarithms of the ratios."""
    middle, count = float(logs.mean()), len(logs)
    if count < 2:
        return Mean(math.expm1(middle), None, None)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1) * logs.std(ddof=1) / math.sqrt(count))
    return Mean(math.expm1(middle), math.expm1(middle - half), math.expm1(middle + half))
