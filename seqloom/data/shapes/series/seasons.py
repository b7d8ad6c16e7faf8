"""Seasons, found from the training part: the lengths at which series repeat themselves, each with its evidence.

A length counts if both hold, at the level LEVEL for all candidates together:
- the autocorrelation at this lag, without the trend, is significant (Bartlett's formula) and the highest between half
  and one and a half of it;
- on held-out stretches of half a season, the seasonal naive forecast (the value one season earlier, also with the
  change of level since then) is better than the last value.
A length beyond a season already found must add to it: its naive forecast is better than that of the shorter one, or the
differences over the shorter season are correlated at this lag, and more so than at its neighbouring multiples.

White noise, random walks and AR(1) fail: there the last value is as good or better. Evidence of many series is pooled;
series that move together count as few.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

LEVEL = 0.01  # probability that chance gives any of the autocorrelations asked for
NAIVE = 0.05  # and that it makes the naive forecast of a calendar season better than the last value
CYCLES = 3  # seasons that the longest series must have
POINTS = 250_000  # examined at most, in about half a second
CHANNELS = (16, 256)  # columns examined: more if they are short
PEAKS = 8  # lags tried if the calendar suggests none
FAR = 5.0  # mean absolute deviations at which values are clipped: two outliers are no season


class Season(NamedTuple):
    points: int
    evidence: str = ""  # empty: the user says so

    def __str__(self) -> str:
        return f"{self.points} ({self.evidence})" if self.evidence else str(self.points)


def named(seasons: Sequence[Season]) -> str:
    """`seasons 24 (autocorrelation 0.91, ...) and 168 (...)`."""
    if not seasons:
        return "no season"
    return ("seasons " if len(seasons) > 1 else "season ") + " and ".join(str(season) for season in seasons)


def find_seasons(channels: Sequence[np.ndarray], likely: Sequence[int] = ()) -> list[Season]:
    """`channels`: the training points of each series and target, NaN where missing, which end at the same time.
    `likely`: lags that the calendar suggests; without any, peaks of the autocorrelation are tried."""
    kept = [values for values in channels if _changes(values)]
    if not kept:
        return []
    pool = _Pool(kept)
    if likely:
        lags = [lag for lag in sorted(set(likely)) if 2 <= lag <= pool.longest]
        return _confirmed(pool, lags, LEVEL / len(likely), NAIVE)
    return _confirmed(pool, _peaks(pool), LEVEL / max(1, pool.longest), LEVEL / PEAKS)


def _confirmed(pool: _Pool, lags: Sequence[int], level: float, naive: float) -> list[Season]:
    found: list[Season] = []
    for lag in lags:
        if evidence := _evidence(pool, lag, found[-1].points if found else 0, level, naive):
            found.append(Season(lag, evidence))
    return found


def _evidence(pool: _Pool, lag: int, shorter: int, level: float, naive: float) -> str | None:
    """Why this lag is a season, given a shorter one (0: none); None: it is not."""
    seen = pool.correlations(lag, lag + lag // 2)
    if not seen.is_peak(lag, level):
        return None
    errors = _errors(pool, lag, shorter)
    share = errors.share("last", naive, also=["drift"])
    if share is None:
        return None
    words = f"autocorrelation {seen.at[lag]:.2f}"
    if not shorter:
        return f"{words}, naive forecast with {share:.2f} of the last value's MAE"
    if (share := errors.share("shorter", level)) is not None:
        return f"{words}, naive forecast with {share:.2f} of the MAE of that of {shorter}"
    left = pool.correlations(lag, lag + max(shorter, lag // 2), shorter)
    neighbours = max(left.at[lag - shorter], left.at[lag + shorter])
    if left.is_peak(lag, level) and left.at[lag] - neighbours > 2**0.5 * left.limit(lag, LEVEL):
        return f"{words}, and {left.at[lag]:.2f} of the differences over {shorter}"
    return None


class _Correlations(NamedTuple):
    at: np.ndarray  # by lag, from 0
    points: float  # independent ones
    seasonal: bool  # shorter lags may show a season

    def limit(self, lag: int, level: float) -> float:
        """What chance may give at this lag (Bartlett 1946), given the persistence of the series: its autocorrelation
        at shorter lags, if these may show a season only until that first vanishes."""
        negative = (self.at[:lag] <= 0) & self.seasonal
        short = self.at[1 : int(negative.argmax()) if negative.any() else lag]
        return float(NormalDist().inv_cdf(1 - level) * ((1 + 2 * (short**2).sum()) / self.points) ** 0.5)

    def is_peak(self, lag: int, level: float, noise: float = 2.0) -> bool:
        """Whether it is significant and, up to `noise` standard errors, the highest from half to one and a half of
        this lag."""
        around = self.at[lag // 2 + 1 : lag + (lag + 1) // 2]
        here = self.at[lag]
        return bool(here > self.limit(lag, level) and here + noise / self.points**0.5 >= around.max(initial=-1))


class _Pool:
    """All series as one array, (C, T), that ends where they end: NaN before they begin and where values are missing."""

    def __init__(self, channels: Sequence[np.ndarray]) -> None:
        most = int(np.clip(POINTS // np.median([len(values) for values in channels]), *CHANNELS))
        places = np.unique(np.linspace(0, len(channels) - 1, min(most, len(channels))).astype(int))
        chosen = [channels[n][-(POINTS // len(places)) :] for n in places]
        self.lengths = np.array([len(values) for values in chosen])
        self.values = np.full((len(chosen), self.lengths.max()), np.nan)
        for row, values in zip(self.values, chosen, strict=True):
            row[len(row) - len(values) :] = (values - np.nanmean(values)) / np.nanstd(values)
        self.longest = int(self.lengths.max()) // CYCLES
        self.filled = _filled(self.values)
        self.count = _independent(self.values)

    def correlations(self, window: int, most: int, season: int = 0) -> _Correlations:
        """At the lags 0 to `most`, over the series with enough points; without a trend over `window` points or, given
        a season, of the differences over it."""
        values = self.values[self.lengths >= CYCLES * window]
        if not len(values):
            return _Correlations(np.zeros(most + 1), 1.0, not season)
        rest = values[:, season:] - values[:, :-season] if season else _without_trend(values, window)
        rest = rest - np.nanmean(rest, axis=1, keepdims=True)
        far = FAR * np.nanmean(np.abs(rest), axis=1, keepdims=True)
        rest = np.clip(rest, -far, far) / np.where(far > 1e-9, far, np.inf)
        there = np.isfinite(rest)
        sums, pairs = _products(np.where(there, rest, 0.0), most), _products(there.astype(np.float64), most)
        found = np.divide(sums, pairs, out=np.zeros_like(sums), where=pairs > 0.5)
        return _Correlations(found / max(found[0], 1e-12), float(there.sum(1).max()) * self.count, not season)


class _Errors(NamedTuple):
    """Mean absolute errors of each stretch, by forecast."""

    by: dict[str, np.ndarray]
    stretches: float  # independent ones

    def better(self, own: str, others: Sequence[str], level: float) -> bool:
        """Than each of the others, by a one-sided t-test on relative differences, which no stretch can dominate."""
        if self.stretches <= 3:
            return False
        for other in others:
            total = self.by[own] + self.by[other]
            gains = np.divide(self.by[other] - self.by[own], total, out=np.zeros_like(total), where=total > 1e-6)
            error = max(float(gains.std()), 1e-3) / (self.stretches - 1) ** 0.5
            if gains.mean() / error <= _student(1 - level, self.stretches - 1):
                return False
        return True

    def share(self, other: str, level: float, also: Sequence[str] = ()) -> float | None:
        """The share of the other's error that the seasonal naive forecast makes, or the one that follows the level;
        None: neither is significantly better. The latter must also beat others that follow the level."""
        ours = [
            name
            for name, than in (("seasonal", [other]), ("drifting", [other, *also]))
            if self.better(name, than, level / 2)
        ]
        return min((float(self.by[name].sum() / self.by[other].sum()) for name in ours), default=None)


def _errors(pool: _Pool, lag: int, shorter: int) -> _Errors:
    size, end = -(-lag // 2), pool.values.shape[1]
    starts = np.arange(end - size, lag, -size)
    steps = starts[:, None] + np.arange(size)  # (S, size)
    actual, seen = pool.values[:, steps], pool.filled
    last = seen[:, starts - 1, None]
    forecasts = {"seasonal": seen[:, steps - lag], "last": last}
    change = last - seen[:, starts - 1 - lag, None]
    forecasts["drift"] = last + change / lag * np.arange(1, size + 1)
    forecasts["drifting"] = forecasts["seasonal"] + change
    if shorter:
        forecasts["shorter"] = seen[:, steps - shorter * (1 + (steps - starts[:, None]) // shorter)]
    there = np.isfinite(actual)
    used = there.any(2) & (starts - 1 - lag >= end - pool.lengths[:, None])  # (C, S)
    counts = np.maximum(1, there.sum(2))
    by = {
        name: (np.where(there, np.abs(values - actual), 0.0).sum(2) / counts)[used]
        for name, values in forecasts.items()
    }
    return _Errors(by, min(float(used.any(0).sum()) * pool.count, float(used.sum())))


def _peaks(pool: _Pool) -> list[int]:
    """Lags whose autocorrelation is a significant peak, each without a trend over one to two times as many points."""
    found: dict[int, float] = {}
    window = 4
    while window // 2 < pool.longest:
        most = min(window, pool.longest)
        seen = pool.correlations(most, min(4 * most, pool.values.shape[1] - 1))
        for lag in range(max(2, window // 2 + 1), most + 1):
            if seen.is_peak(lag, LEVEL / pool.longest, noise=0):
                found[_sharpened(seen.at, lag)] = float(seen.at[lag])
        window *= 2
    return sorted(sorted(found, key=lambda lag: -found[lag])[:PEAKS])


def _sharpened(found: np.ndarray, lag: int) -> int:
    """The lag, at most a tenth away, whose multiples are peaks too: noise moves those of a season less."""
    near = np.arange(max(2, lag - lag // 10), lag + lag // 10 + 1)
    near = near[near * 2 < len(found)]
    if not len(near):
        return lag
    times = np.arange(1, (len(found) - 1) // int(near[-1]) + 1)
    return int(near[found[near[:, None] * times].mean(1).argmax()])


def _without_trend(values: np.ndarray, window: int) -> np.ndarray:
    """(C, T) less a centred moving average over `window` points, continued at both ends by straight lines."""
    there = np.isfinite(values)
    sums, counts = (np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0))) for x in (np.where(there, values, 0.0), there))
    total, number = (x[:, window:] - x[:, :-window] for x in (sums, counts.astype(np.float64)))
    if window % 2 == 0:  # half weights at both ends, to be centred
        total, number = (x[:, 1:] + x[:, :-1] for x in (total, number))
    mean = np.divide(total, number, out=np.full_like(total, np.nan), where=number > 0.75 * number.max(1, keepdims=True))
    first = window // 2
    trend = np.pad(mean, ((0, 0), (first, values.shape[1] - mean.shape[1] - first)), constant_values=np.nan)
    return np.asarray(values - _continued(trend, window))


def _continued(trend: np.ndarray, window: int) -> np.ndarray:
    """Gaps interpolated, both ends extrapolated with the slope over a window."""
    steps, found = np.arange(trend.shape[1]), trend.copy()
    for row in found:
        places = np.flatnonzero(np.isfinite(row))
        if len(places):
            first, last = places[0], places[-1]
            row[:] = np.interp(steps, places, row[places])
            span = max(1, min(window, last - first))
            row[:first] += (row[first + span] - row[first] if last > first else 0) / span * (steps[:first] - first)
            row[last + 1 :] += (row[last] - row[last - span]) / span * (steps[last + 1 :] - last)
    return found


def _products(values: np.ndarray, most: int) -> np.ndarray:
    """Sums of the products of all values 0 to `most` points apart."""
    size = values.shape[1] + most + 1
    size = 1 << (size - 1).bit_length()
    power = (np.abs(np.fft.rfft(values, size)) ** 2).sum(0)
    return np.asarray(np.fft.irfft(power, size)[: most + 1])


def _independent(values: np.ndarray) -> float:
    """As many independent series would say as much: by the mean squared correlation of their changes."""
    steps = np.nan_to_num(np.diff(values, axis=1))
    far = FAR * np.abs(steps).mean(1, keepdims=True)
    steps = np.clip(steps, -far, far)
    size = np.sqrt((steps**2).sum(1, keepdims=True))
    steps /= np.where(size > 0, size, 1.0)
    alike = np.square(steps @ steps.T)
    rest = alike.sum() - np.trace(alike)
    count = len(values)
    mean = rest / max(1, count * (count - 1)) - 1 / max(1.0, float(np.median((steps != 0).sum(1))))  # less chance
    return count / (1 + (count - 1) * min(1.0, max(0.0, mean)))


def _student(level: float, free: float) -> float:
    """Quantile of Student's t by its expansion around the normal distribution (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / free ** (n + 1) for n, term in enumerate(terms)))


def _filled(values: np.ndarray) -> np.ndarray:
    """(C, T) with missing values replaced by the last before them, those at the start by the first."""
    there = np.isfinite(values)
    places = np.maximum.accumulate(np.where(there, np.arange(values.shape[1]), -1), axis=1)
    places = np.where(places < 0, there.argmax(1)[:, None], places)
    return np.asarray(np.take_along_axis(values, places, axis=1))


def _changes(values: np.ndarray) -> bool:
    there = values[np.isfinite(values)]
    return len(there) > 2 * CYCLES and bool(there.max() > there.min())
