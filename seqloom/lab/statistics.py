"""Which differences between models are significant, given the luck of tuning, of seeds and of the test data.

Scores are lists over seeds of lists over test pieces; all models are scored on the same pieces, in the same order. The
variance of a model's mean score has three parts, and so has that of a difference between two models:

    tuning: another search might have picked other settings (`lab/selection.py`)
    seeds:  variance over seeds / number of seeds; none for a model that does not depend on a seed
    pieces: variance over blocks of the test data / number of blocks; of a difference, that of the paired difference

Every model is compared with the best of the others (Hsu 1984), by intervals for all pairs that hold simultaneously
(Tamhane 1977: Welch's t at Sidak's level), so that nothing rests on which model came first on the test data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import stats

from seqloom.lab.scales import Bounds, interval_on_scale

Scores = Sequence[Sequence[float]] | np.ndarray  # seeds, then pieces

ROUNDING = 1e-12  # relative size below which a difference is rounding error
PRIOR = 2  # degrees of freedom that the variance of the other models counts for
BLOCKS = 10  # blocks of neighbouring pieces, treated as independent

Standing = Literal["best", "worse", "equivalent", "unclear"]


@dataclass(frozen=True)
class Sample:
    """The test scores of one model. `fixed`: it does not depend on a seed, so one run shows it all."""

    scores: np.ndarray  # (seeds, pieces)
    fixed: bool = False
    common: float | None = None  # variance over seeds of the models of the comparison, on average
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
        parts = [] if self.fixed else [self._seeds(size)]
        return parts + ([(self.tuning, max(1, self.trials // 2))] if self.tuning else [])


    def _seeds(self, size: float) -> tuple[float, int]:
        """A few seeds may agree by chance, so their variance is drawn towards that of the other models (Smyth 2004)."""
        count, own = len(self.scores), _spread(self.scores.mean(axis=1), size) ** 2
        if self.common is None:
            return own / count, count - 1
        variance = ((count - 1) * own + PRIOR * self.common) / (count - 1 + PRIOR)
        return variance / count, count - 1 + PRIOR


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
    """Standard error of a mean or of a difference, and its degrees of freedom."""

    error: float
    freedom: float


def interval(values: Sequence[float], confidence: float = 0.95, bounds: Bounds = (None, None)) -> Interval:
    """Mean over seeds with its confidence interval, by Student's t."""
    return score_interval(Sample.of([[value] for value in values]), confidence, bounds)


def score_interval(sample: Sample, confidence: float = 0.95, bounds: Bounds = (None, None)) -> Interval:
    """The mean score with its confidence interval, on a scale on which it cannot leave the bounds of the score."""
    seeds = len(sample.scores)
    if not sample.testable:
        return Interval(sample.mean, None, None, seeds)
    size = float(np.abs(sample.scores).max())
    found = _combined(sample.own(size), _pieces(blocks(sample.scores).mean(axis=0), size), capped=False)
    reach = float(stats.t.ppf((1 + confidence) / 2, found.freedom)) * found.error
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
    error = _combined([*a.own(size), *b.own(size)], _pieces(pieces, size), capped=True)
    return (found if abs(found) > ROUNDING * size else 0.0), error


def verdicts(
    entries: Mapping[str, Sample], higher_is_better: bool, level: float = 0.05, margin: float = 0.0,
    bounds: Bounds = (None, None),
) -> dict[str, Verdict]:  # fmt: skip
    """The best by its mean, and what the evidence says of every other model, with `level` for all of it together:

    worse: some other model is better by more than chance; equivalent: behind the best by less than the margin, if at
    all; unclear: neither is shown, or it cannot be tested (one seed, or scores that are not finite).
    """
    found = {name: Verdict(None, None, None, None, "unclear") for name in entries}
    sign = -1.0 if higher_is_better else 1.0
    tested = {n: _signed(sample, sign) for n, sample in entries.items() if np.isfinite(sample.scores).all()}
    if not tested:
        return found
    tested = _with_common_variance(tested)
    best = min(tested, key=lambda name: tested[name].mean)
    sure = [name for name in tested if tested[name].testable]
    widest = None if None in bounds else float(bounds[1]) - float(bounds[0])  # type: ignore[arg-type]
    for name, sample in tested.items():
        others = [tested[other] for other in sure if other != name]
        if name in sure and others:
            found[name] = _against_others(sample, others, len(sure), level, margin, widest)
        else:
            rivals = [other.mean for key, other in tested.items() if key != name]
            gap = sample.mean - min(rivals) if rivals else None
            found[name] = Verdict(gap, None, None, None, "unclear")
    return found | {best: _as_best(found[best])}


def critical(models: int, freedom: float, level: float) -> float:
    """How many standard errors two of so many models must be apart to differ, with `level` for all pairs together."""
    return _quantile(1 - (1 - level) ** (1 / _pairs(models)), math.floor(max(1.0, freedom) * 20) / 20)


def _against_others(
    sample: Sample, others: Sequence[Sample], models: int, level: float, margin: float, widest: float | None
) -> Verdict:
    """Its distance to the best of the others lies between the largest lower and the largest upper bound of all."""
    pairs = [difference(sample, other) for other in others]
    gaps = [gap for gap, _ in pairs]
    reaches = [critical(models, error.freedom, level) * error.error for _, error in pairs]
    lows = [gap - reach for gap, reach in zip(gaps, reaches, strict=True)]
    low, high = max(lows), max(gap + reach for gap, reach in zip(gaps, reaches, strict=True))
    if widest is not None:
        low, high = max(low, -widest), min(high, widest)
    standing: Standing = "equivalent" if high < margin else "worse" if low > 0 else "unclear"
    chances = [_chance(*pair, models) for pair in pairs]
    better = [p for p, gap in zip(chances, gaps, strict=True) if gap > 0]
    return Verdict(max(gaps), low, high, min(better) if better else max(chances), standing)


def _as_best(verdict: Verdict) -> Verdict:
    return Verdict(verdict.difference, verdict.low, verdict.high, verdict.p, "best")


def _chance(gap: float, error: Error, models: int) -> float:
    """The p-value for all pairs together."""
    if not error.error:
        return 0.0 if gap else 1.0
    alone = 2 * float(stats.t.sf(abs(gap) / error.error, error.freedom))
    return -math.expm1(_pairs(models) * math.log1p(-min(alone, 1 - 1e-16)))


def _pairs(models: int) -> int:
    return max(1, models * (models - 1) // 2)


@lru_cache(maxsize=4096)
def _quantile(level: float, freedom: float) -> float:
    return float(stats.t.isf(level / 2, freedom))


def _combined(own: Sequence[tuple[float, int]], pieces: tuple[float, int], capped: bool) -> Error:
    """The sum of the variances, with the degrees of freedom of Welch and Satterthwaite.

    `capped`: at most those of the seeds and the search. Where seeds happen to agree, the error would otherwise rest on
    the many pieces, which say nothing about another seed: among eight equal models, that happens to some pair often.
    """
    total = sum(variance for variance, _ in (*own, pieces))
    if not total:
        return Error(0.0, 1.0)
    shares = [(variance / total, max(freedom, 1)) for variance, freedom in (*own, pieces)]  # squares might underflow
    welch = 1 / sum(share**2 / freedom for share, freedom in shares)
    luck = sum(freedom for share, freedom in shares[:-1] if share)
    return Error(math.sqrt(total), min(welch, luck) if capped and luck else welch)


def _pieces(values: np.ndarray, size: float) -> tuple[float, int]:
    return _spread(values, size) ** 2 / len(values), len(values) - 1


def blocks(table: np.ndarray) -> np.ndarray:
    """Means over blocks: neighbouring pieces of a text are correlated, blocks of them hardly."""
    if table.shape[1] < 2 * BLOCKS:
        return table
    return np.stack([block.mean(axis=1) for block in np.array_split(table, BLOCKS, axis=1)], axis=1)


def _with_common_variance(samples: dict[str, Sample]) -> dict[str, Sample]:
    random = [sample for sample in samples.values() if sample.testable and not sample.fixed]
    if len(random) < 2:
        return samples
    common = float(np.mean([np.var(sample.scores.mean(axis=1), ddof=1) for sample in random]))
    return {name: replace(sample, common=common) for name, sample in samples.items()}


def _signed(sample: Sample, sign: float) -> Sample:
    return replace(sample, scores=sign * sample.scores)


def _spread(values: np.ndarray, size: float = 0.0) -> float:
    """Standard deviation, exactly 0 for values that differ only by rounding."""
    if len(values) < 2:
        return 0.0
    spread = float(np.std(values, ddof=1))
    return spread if spread > ROUNDING * max(size, float(np.abs(values).max())) else 0.0
