"""Which differences between models are significant, given the variation over seeds and over the test data.

Scores are lists over seeds of lists over test pieces; all models are scored on the same pieces, in the same order.
The difference of two models is the difference of their means. Its variance has three parts:

    var over seeds of A / seeds of A + var over seeds of B / seeds of B + var over pieces of the difference / pieces

The test is paired by piece: the difference per piece, averaged over seeds, cancels what is hard for both models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

Scores = Sequence[Sequence[float]] | np.ndarray  # seeds, then pieces

ROUNDING = 1e-12  # relative size below which a difference is rounding error
POWER = 0.8  # probability of detecting the difference with the estimated number of seeds
MOST_SEEDS = 1000
BLOCKS = 10  # blocks of neighbouring pieces, treated as independent


@dataclass(frozen=True)
class Interval:
    mean: float
    low: float | None  # None with one seed: no variance estimate
    high: float | None
    seeds: int


@dataclass(frozen=True)
class Difference:
    difference: float
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Verdict:
    """One model against the best. A positive difference means worse, whatever the metric's direction."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None  # after Holm's correction
    verdict: Literal["best", "tie", "worse", "unclear"]


@dataclass(frozen=True)
class _Parts:
    """The parts of the variance of a difference, with the degrees of freedom of each."""

    difference: float
    variances: tuple[float, float, float]  # seeds of A, seeds of B, pieces
    freedoms: tuple[int, int, int]

    @property
    def error(self) -> float:
        return math.sqrt(sum(self.variances))

    @property
    def freedom(self) -> float:
        """Welch-Satterthwaite degrees of freedom, capped by those of the seeds.

        Otherwise, when two seeds happen to agree, the error would rest on the many pieces, which say nothing about
        seeds: comparing eight equal models with two seeds each would then find a difference one time in ten.
        """
        # as shares, because squares of tiny variances underflow
        shares = [variance / sum(self.variances) for variance in self.variances]
        welch = 1 / sum(share**2 / max(freedom, 1) for share, freedom in zip(shares, self.freedoms, strict=True))
        seeds = sum(freedom for share, freedom in zip(shares[:2], self.freedoms[:2], strict=True) if share)
        return min(welch, seeds) if seeds else welch


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean over seeds with its confidence interval, by Student's t."""
    mean = float(np.mean(values))
    if len(values) < 2 or not math.isfinite(mean):
        return Interval(mean, None, None, len(values))
    error = _spread(np.asarray(values, float)) / math.sqrt(len(values))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return Interval(mean, mean - reach, mean + reach, len(values))


def compare_pair(pieces_a: Scores, pieces_b: Scores, confidence: float = 0.95) -> Difference:
    """A minus B, with its confidence interval and two-sided p-value."""
    a, b = _table(pieces_a), _table(pieces_b)
    parts = _parts(a, b)
    if min(len(a), len(b)) < 2:
        return Difference(parts.difference, None, None, None)
    if not parts.error:
        return Difference(parts.difference, parts.difference, parts.difference, 0.0 if parts.difference else 1.0)
    reach = float(stats.t.ppf((1 + confidence) / 2, parts.freedom)) * parts.error
    p = 2 * float(stats.t.sf(abs(parts.difference) / parts.error, parts.freedom))
    return Difference(parts.difference, parts.difference - reach, parts.difference + reach, p)


def verdicts(
    entries: Mapping[str, Scores], higher_is_better: bool, level: float = 0.01, confidence: float = 0.95
) -> dict[str, Verdict]:
    """The best by its mean, and every other model against it: a tie unless the Holm-corrected p is below the level.

    A model with one seed or with scores that are not finite cannot be tested: unclear.
    """
    found = {name: Verdict(None, None, None, None, "unclear") for name in entries}
    sign = -1.0 if higher_is_better else 1.0
    losses = {name: sign * _table(scores) for name, scores in entries.items()}
    losses = {name: table for name, table in losses.items() if np.isfinite(table).all()}
    if not losses:
        return found
    best = min(losses, key=lambda name: float(losses[name].mean()))
    pairs = {name: compare_pair(table, losses[best], confidence) for name, table in losses.items() if name != best}
    corrected = holm({name: pair.p for name, pair in pairs.items() if pair.p is not None})
    for name, pair in pairs.items():
        p = corrected.get(name)
        verdict: Literal["unclear", "worse", "tie"] = "unclear" if p is None else "worse" if p < level else "tie"
        found[name] = Verdict(pair.difference, pair.low, pair.high, p, verdict)
    found[best] = Verdict(0.0, None, None, None, "best")
    return found


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's correction, which controls the family-wise error rate."""
    corrected, highest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - rank)))
        corrected[name] = highest
    return corrected


def seeds_needed(
    pieces_a: Scores, pieces_b: Scores, level: float = 0.01, comparisons: int = 1, most: int = MOST_SEEDS
) -> int | None:
    """Approximate number of seeds per model for a significant difference, if the true one is as large as measured.

    None if no number up to `most` is enough: there is no difference, or the variation over test pieces alone is too
    large. `comparisons`: number of tests that share the level. Needs two seeds of each model.
    """
    a, b = _table(pieces_a), _table(pieces_b)
    parts = _parts(a, b)
    if min(len(a), len(b)) < 2 or not parts.difference:
        return None
    a, b = _blocks(a), _blocks(b)
    seeds = parts.variances[0] * len(a) + parts.variances[1] * len(b)  # of a single seed
    interaction = _interaction(a) + _interaction(b)
    irreducible = max(0.0, parts.variances[2] - _interaction(a) / len(a) - _interaction(b) / len(b))
    for count in range(2, most + 1):
        error = math.sqrt((seeds + interaction) / count + irreducible)
        freedom = 2 * count - 2
        quantiles = stats.t.ppf(1 - level / comparisons / 2, freedom) + stats.t.ppf(POWER, freedom)
        if abs(parts.difference) >= quantiles * error:
            return count
    return None


def _table(scores: Scores) -> np.ndarray:
    table = np.asarray(scores, float)  # (seeds, pieces); refuses rows of unequal length
    if table.ndim != 2 or not table.size:
        raise ValueError(f"scores must be a list over seeds of lists over pieces, not of shape {table.shape}")
    return table


def _parts(a: np.ndarray, b: np.ndarray) -> _Parts:
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"both models must be scored on the same pieces; one has {a.shape[1]}, the other {b.shape[1]}")
    size = float(max(np.abs(a).max(), np.abs(b).max()))
    difference = float(a.mean() - b.mean())
    a, b = _blocks(a), _blocks(b)
    pieces = a.mean(axis=0) - b.mean(axis=0)
    values = (a.mean(axis=1), b.mean(axis=1), pieces)
    variances = [_spread(value, size) ** 2 / len(value) for value in values]
    return _Parts(
        difference=difference if abs(difference) > ROUNDING * size else 0.0,
        variances=(variances[0], variances[1], variances[2]),
        freedoms=(len(a) - 1, len(b) - 1, len(pieces) - 1),
    )


def _blocks(table: np.ndarray) -> np.ndarray:
    """Means over blocks: neighbouring pieces of a text are correlated, blocks of them hardly."""
    if table.shape[1] < 2 * BLOCKS:
        return table
    return np.stack([block.mean(axis=1) for block in np.array_split(table, BLOCKS, axis=1)], axis=1)


def _spread(values: np.ndarray, size: float = 0.0) -> float:
    """Standard deviation, exactly 0 for values that differ only by rounding."""
    if len(values) < 2:
        return 0.0
    spread = float(np.std(values, ddof=1))
    return spread if spread > ROUNDING * max(size, float(np.abs(values).max())) else 0.0


def _interaction(table: np.ndarray) -> float:
    """Contribution of the seed-by-piece interaction to the variance of one seed's mean over pieces."""
    seeds, pieces = table.shape
    if pieces < 2:
        return 0.0
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    found: float = float((rest**2).sum()) / ((seeds - 1) * (pieces - 1)) / pieces
    return found
