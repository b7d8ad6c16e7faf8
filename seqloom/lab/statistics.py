"""Which differences between models are significant, given the luck of tuning, of seeds and of the test data.

Scores are lists over seeds of lists over test pieces; all models are scored on the same pieces, in the same order. The
variance of a model's mean score has three parts, and so has that of a difference between two models:

    tuning: another search might have picked other settings (`lab/selection.py`)
    seeds:  variance over seeds / number of seeds; none for a model that does not depend on a seed
    pieces: variance over blocks of the test data / number of blocks; of a difference, that of the paired difference

Every model is compared with the best of the others (Hsu 1984), by intervals for all pairs that hold simultaneously
(at Sidak's level), so that nothing rests on which model came first on the test data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from seqloom.lab.scales import Bounds, interval_on_scale

Scores = Sequence[Sequence[float]] | np.ndarray  # seeds, then pieces

ROUNDING = 1e-12  # relative size below which a difference is rounding error
BLOCKS = 10  # blocks of neighbouring pieces, treated as independent

Standing = Literal["best", "worse", "equivalent", "unclear"]


@dataclass(frozen=True)
class Sample:
    """The test scores of one model. `fixed`: it does not depend on a seed, so one run shows it all."""

    scores: np.ndarray  # (seeds, pieces)
    fixed: bool = False
    tuning: float = 0.0  # variance of its expected score over repetitions of the search
    trials: int = 0  # finished trials that this variance was estimated from

    @classmethod
    def of(cls, scores: Scores, *, fixed: bool = False, tuning: float = 0.0, trials: int = 0) -> Sample:
        table = np.asarray(scores, float)  # refuses rows of unequal length
        if table.ndim != 2 or not table.size:
            raise ValueError(f"scores must be a list over seeds of lists over pieces, not of shape {table.shape}")
        return cls(table, fixed, tuning, trials)

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def testable(self) -> bool:
        """One seed shows no variance over seeds, and one piece none over pieces."""
        return bool(np.isfinite(self.scores).all()) and self.scores.shape[0 if not self.fixed else 1] > 1

    def own(self, size: float) -> list[tuple[float, int]]:
        """The parts of its variance that it shares with no other model, each with its degrees of freedom."""
        seeds = self.scores.mean(axis=1)
        parts = [] if self.fixed else [(_spread(seeds, size) ** 2 / len(seeds), len(seeds) - 1)]
        # the variance of tuning is a rough estimate, from the few trials near the best
        return parts + ([(self.tuning, max(1, self.trials // 4))] if self.tuning else [])


@dataclass(frozen=True)
class Interval:
    mean: float
    low: float | None  # None with one seed: no variance estimate
    high: float | None
    seeds: int


@dataclass(frozen=True)
class Verdict:
    """One model against the best of the others. A positive difference means worse, whatever the metric's direction."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None  # for all pairs together
    verdict: Standing


@dataclass(frozen=True)
class Error:
    """The variance of a mean or of a difference: of tuning and seeds together, and of the test data; each with its
    degrees of freedom."""

    luck: tuple[float, float]
    pieces: tuple[float, float]

    @property
    def none(self) -> bool:
        return not self.luck[0] and not self.pieces[0]

    def reach(self, level: float) -> float:
        """Half of the width of a confidence interval. The half-widths of both parts are added as squares (Graybill and
        Wang 1980): a t-distribution for their sum would rest on the many pieces where a few seeds agree by chance."""
        return math.sqrt(
            sum(_quantile(level, freedom) ** 2 * variance for variance, freedom in (self.luck, self.pieces))
        )

    def chance(self, gap: float) -> float:
        """The two-sided p-value: the level at which the interval just reaches the difference."""
        if self.none:
            return 0.0 if gap else 1.0
        low, high = -300.0, 0.0  # powers of ten
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.reach(10.0**middle) > abs(gap) else (low, middle)
        return float(10.0**high)


def interval(values: Sequence[float], confidence: float = 0.95, bounds: Bounds = (None, None)) -> Interval:
    """Mean over seeds with its confidence interval, by Student's t."""
    return score_interval(Sample.of([[value] for value in values]), confidence, bounds)


def score_interval(sample: Sample, confidence: float = 0.95, bounds: Bounds = (None, None)) -> Interval:
    """The mean score with its confidence interval, on a scale on which it cannot leave the bounds of the score. One t
    for all parts of the variance: the cautious sum of `Error.reach`, which verdicts rest on, covers up to 99 % here."""
    seeds = len(sample.scores)
    if not sample.testable:
        return Interval(sample.mean, None, None, seeds)
    size = float(np.abs(sample.scores).max())
    variance, freedom = _together([*sample.own(size), _pieces(blocks(sample.scores).mean(axis=0), size)])
    reach = -_quantile(1 - confidence, freedom) * math.sqrt(variance)
    return Interval(sample.mean, *interval_on_scale(sample.mean, reach, bounds), seeds)


def difference(a: Sample, b: Sample) -> tuple[float, Error]:
    """A minus B, and its standard error: paired by piece, which cancels what is hard for both models."""
    if a.scores.shape[1] != b.scores.shape[1]:
        raise ValueError(
            f"both models must be scored on the same pieces; one has {a.scores.shape[1]}, the other {b.scores.shape[1]}"
        )
    size = float(max(np.abs(a.scores).max(), np.abs(b.scores).max()))
    pieces = blocks(a.scores).mean(axis=0) - blocks(b.scores).mean(axis=0)
    found = a.mean - b.mean
    error = Error(_together([*a.own(size), *b.own(size)]), _pieces(pieces, size))
    return (found if abs(found) > ROUNDING * size else 0.0), error


def verdicts(
    entries: Mapping[str, Sample], higher_is_better: bool, level: float = 0.05, margin: float = 0.0,
    bounds: Bounds = (None, None),
) -> dict[str, Verdict]:  # fmt: skip
    """The best by its mean, and what the evidence says of every other model, with `level` for all of it together:

    worse: some other model is better by more than chance; equivalent: behind the best by less than the margin, if at
    all; unclear: neither is shown, or it cannot be tested (one seed, or scores that are not finite).
    Beside a model that cannot be tested nothing has an upper bound: that model may be better by any amount.
    """
    found = {name: Verdict(None, None, None, None, "unclear") for name in entries}
    sign = -1.0 if higher_is_better else 1.0
    tested = {n: _signed(sample, sign) for n, sample in entries.items() if np.isfinite(sample.scores).all()}
    if not tested:
        return found
    best = min(tested, key=lambda name: tested[name].mean)
    sure = [name for name in tested if tested[name].testable]
    widest = None if None in bounds else float(bounds[1]) - float(bounds[0])  # type: ignore[arg-type]
    for name, sample in tested.items():
        others = [tested[other] for other in sure if other != name]
        rivals = [other.mean for key, other in tested.items() if key != name]
        gap = sample.mean - min(rivals) if rivals else None
        if name not in sure or not others:
            found[name] = Verdict(gap, None, None, None, "unclear")
            continue
        found[name] = _against_others(sample, others, len(sure), level, margin, widest)
        if len(sure) < len(tested):
            standing: Standing = "worse" if (found[name].low or 0.0) > 0 else "unclear"
            found[name] = replace(found[name], difference=gap, high=None, verdict=standing)
    return found | {best: replace(found[best], verdict="best")}


def per_pair(level: float, models: int) -> float:
    """The level of one pair, so that all pairs of so many models together have this level (Sidak)."""
    return -math.expm1(math.log1p(-level) / _pairs(models))


def _against_others(
    sample: Sample, others: Sequence[Sample], models: int, level: float, margin: float, widest: float | None
) -> Verdict:
    """Its distance to the best of the others lies between the largest lower and the largest upper bound of all."""
    pairs = [difference(sample, other) for other in others]
    gaps = [gap for gap, _ in pairs]
    reaches = [error.reach(per_pair(level, models)) for _, error in pairs]
    lows = [gap - reach for gap, reach in zip(gaps, reaches, strict=True)]
    low, high = max(lows), max(gap + reach for gap, reach in zip(gaps, reaches, strict=True))
    if widest is not None:
        low, high = max(low, -widest), min(high, widest)
    standing: Standing = "equivalent" if high < margin else "worse" if low > 0 else "unclear"
    clear = [abs(gap) / reach if reach else math.inf for gap, reach in zip(gaps, reaches, strict=True)]
    better = [n for n, gap in enumerate(gaps) if gap > 0]
    shown = max(better, key=clear.__getitem__) if better else min(range(len(gaps)), key=clear.__getitem__)
    return Verdict(max(gaps), low, high, _for_all(pairs[shown][1].chance(gaps[shown]), models), standing)


def _for_all(p: float, models: int) -> float:
    """The p-value for all pairs together (Sidak)."""
    return -math.expm1(_pairs(models) * math.log1p(-min(p, 1 - 1e-16)))


def _pairs(models: int) -> int:
    return max(1, models * (models - 1) // 2)


def _quantile(level: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, level / 2))


def _together(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The sum of variances, with the degrees of freedom of Welch and Satterthwaite."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return 0.0, 1.0
    shares = [(variance / total, max(freedom, 1)) for variance, freedom in parts]  # squares of variances may underflow
    return total, 1 / sum(share**2 / freedom for share, freedom in shares)


def _pieces(values: np.ndarray, size: float) -> tuple[float, float]:
    return _spread(values, size) ** 2 / len(values), max(1, len(values) - 1)


def blocks(table: np.ndarray) -> np.ndarray:
    """Means over blocks: neighbouring pieces of a text are correlated, blocks of them hardly."""
    if table.shape[1] < 2 * BLOCKS:
        return table
    return np.stack([block.mean(axis=1) for block in np.array_split(table, BLOCKS, axis=1)], axis=1)


def _signed(sample: Sample, sign: float) -> Sample:
    return replace(sample, scores=sign * sample.scores)


def _spread(values: np.ndarray, size: float = 0.0) -> float:
    """Standard deviation, exactly 0 for values that differ only by rounding."""
    if len(values) < 2:
        return 0.0
    spread = float(np.std(values, ddof=1))
    return spread if spread > ROUNDING * max(size, float(np.abs(values).max())) else 0.0
