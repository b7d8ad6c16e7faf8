"""Prediction intervals by split conformal prediction (Vovk et al. 2005; Lei et al. 2018), step by step.

Every level lies at a distance from the point forecast. For a point forecaster it is the geometric mean of the standard
deviation of the history in the window and of the error of the naive forecast over the last two horizons, so that bands
widen where a series swings more, or has recently been harder to predict; for a distribution, the geometric mean of that
and of the model's own quantile (conformalised quantiles, Romano et al. 2019). The distance is multiplied by the
quantile of `error / distance` over the windows of the validation set. A band therefore always contains its point
forecast, and the bands of higher levels contain those of lower ones.

Overlapping windows are not independent. Errors are taken to be so after half a horizon: n windows without overlap count
as 2n, and the quantiles of so few values are widened as those of a normal distribution would be, by the ratio of
Student's t with 2n - 1 degrees of freedom, times sqrt(1 + 1 / 2n), to the normal quantile.

Below 20 windows, too few to see a 95 % quantile, all targets are pooled, and the rest of the history tells whether the
validation set is milder or wilder than usual. Naive forecasts have no weights, so their errors are honest on the
training set too: every quantile is multiplied by the ratio of theirs over the whole history to theirs on the validation
set (a control variate). From one stretch of time to another, the errors of models change with those of naive forecasts,
with a correlation of 0.9. Of what n validation windows leave open, a share of 0.9^2 is therefore known as well as from
all m windows: 1 / n becomes 0.2 / n + 0.8 / m.
Sizes: W windows, H steps, N targets, L levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqloom.tasks.forecasting.windows import Places, SeriesWindows, window_scale

_FEW = 20  # windows without overlap, below which targets share their quantiles and the history is compared with
_SHARED = 0.8  # squared correlation of the errors of models and naive forecasts, from one stretch of time to another
_MOST = 4.0  # largest ratio of the history to the validation set, either way
_LEAST = 1e-3  # smallest distance, relative to the deviation of the window
_RECENT = 2  # horizons over which the recent errors of the naive forecast are taken
_APART = 20.0  # largest ratio of these errors to the deviation of the window, either way


@dataclass(frozen=True)
class History:
    """Scores `abs(error) / deviation` (W, H, N) of naive forecasts, on the validation set and wherever possible."""

    valid: Sequence[np.ndarray]  # one for each naive forecast
    whole: Sequence[np.ndarray]
    windows: float  # without overlap, of the whole history

    def ratio(self, coverage: float) -> np.ndarray:
        """(H, N): how much larger errors are over the whole history; the geometric mean of the naive forecasts."""
        logs = []
        for valid, whole in zip(self.valid, self.whole, strict=True):
            ours, usual = (_quantiles(scores, coverage, True) for scores in (valid, whole))
            known = (ours > 0) & (usual > 0)
            logs.append(np.log(np.where(known, usual, 1.0) / np.where(known, ours, 1.0)))
        found: np.ndarray = np.exp(np.clip(np.mean(logs, axis=0), -np.log(_MOST), np.log(_MOST)))
        return found


def few(windows: float) -> bool:
    """Whether so many windows without overlap tell too little by themselves."""
    return windows < _FEW


def deviations(windows: SeriesWindows, series: np.ndarray, ends: np.ndarray, season: int = 1) -> np.ndarray:
    """How far each window swings, (W, 1, N): the geometric mean of the standard deviation of its history and of the
    recent error of repeating the last season; of the value one horizon ago where there is no season."""
    deviation = window_scale(windows.history(series, ends, windows.context), "standard")[1]
    lag = season if season > 1 else windows.horizon
    seen = windows.history(series, ends, _RECENT * windows.horizon + lag)
    squares = (seen[:, lag:] - seen[:, :-lag]) ** 2
    there = np.isfinite(squares)
    counts = there.sum(1, keepdims=True)
    error = np.sqrt(np.where(there, squares, 0.0).sum(1, keepdims=True) / np.maximum(1, counts))
    ratio = np.where(counts > 0, np.clip(error / deviation, 1 / _APART, _APART), 1.0)
    found: np.ndarray = deviation * np.sqrt(ratio)
    return found


def distances(points: np.ndarray, quantiles: np.ndarray | None, deviation: np.ndarray, levels: int) -> np.ndarray:
    """(W, H, N, L): from the point forecast to each level, before it is calibrated."""
    if quantiles is None:
        return np.broadcast_to(deviation[..., None], (*points.shape, levels))
    found: np.ndarray = np.sqrt(_own(points, quantiles, deviation) * deviation[..., None])
    return found


def _own(points: np.ndarray, quantiles: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Distances of the quantiles of a distribution."""
    found: np.ndarray = np.maximum(np.abs(quantiles - points[..., None]), _LEAST * deviation[..., None])
    return found


def multipliers(
    errors: np.ndarray, distance: np.ndarray, levels: Sequence[float], windows: float, history: History | None = None
) -> np.ndarray:
    """(H, N, L): the factor of each distance, from errors `actual - point` (W, H, N); `windows`: without overlap."""
    counted = windows if history is None else 1 / ((1 - _SHARED) / windows + _SHARED / max(windows, history.windows))
    found = np.zeros((*errors.shape[1:], len(levels)))
    for n, level in enumerate(levels):
        if not (coverage := abs(2 * level - 1)):
            continue
        mirror = int(np.abs(np.asarray(levels) - (1 - level)).argmin())
        other = mirror if np.isclose(levels[mirror], 1 - level) else n
        low, high = (n, other) if level < 0.5 else (other, n)
        scores = np.abs(errors) / np.where(errors < 0, distance[..., low], distance[..., high])
        usual = 1.0 if history is None else history.ratio(coverage)
        found[..., n] = _quantiles(scores, coverage, few(windows)) * usual * correction(coverage, counted)
    return found


def bands(
    points: np.ndarray,
    quantiles: np.ndarray | None,
    deviation: np.ndarray,
    factors: np.ndarray | None,
    levels: Sequence[float],
) -> np.ndarray:
    """(W, H, N, L), ascending, around the point forecasts; `factors` None: not calibrated."""
    side = np.sign(np.asarray(levels) - 0.5)
    if factors is None and quantiles is not None:
        distance = _own(points, quantiles, deviation)
    else:
        distance = distances(points, quantiles, deviation, len(levels))
    widths = distance * (1.0 if factors is None else factors) * (side != 0)
    below, above = int((side < 0).sum()), int((side <= 0).sum())
    widths[..., :below] = np.maximum.accumulate(widths[..., :below][..., ::-1], axis=-1)[..., ::-1]
    widths[..., above:] = np.maximum.accumulate(widths[..., above:], axis=-1)
    found: np.ndarray = points[..., None] + side * widths
    return found


def independent_windows(places: Places, horizon: int) -> float:
    """How many windows without overlap the origins of a part amount to."""
    counts = places.counts[places.counts > 0]
    return float((((counts - 1) * places.stride + horizon) / horizon).sum())


def correction(coverage: float, windows: float) -> float:
    """By how much an interval from so few windows must be wider."""
    from scipy.special import ndtri, stdtrit

    level, count = (1 + coverage) / 2, max(2.0, 2 * windows)
    return float(stdtrit(count - 1, level) * np.sqrt(1 + 1 / count) / ndtri(level))


def _quantiles(scores: np.ndarray, coverage: float, pooled: bool) -> np.ndarray:
    """(H, N) with the correction of a finite sample, (m + 1) / m; steps without any actual value take the largest."""
    rows = np.moveaxis(scores, 2, 1).reshape(-1, scores.shape[1], 1) if pooled else scores
    counts = np.isfinite(rows).sum(0)
    found = np.zeros(counts.shape)
    for place in np.ndindex(*counts.shape):
        if count := counts[place]:
            there = rows[(slice(None), *place)]
            found[place] = np.quantile(there[np.isfinite(there)], min(1.0, coverage * (count + 1) / count))
    found[counts == 0] = found.max(initial=0.0)
    return np.broadcast_to(found, scores.shape[1:])
