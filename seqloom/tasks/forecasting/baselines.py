"""Baselines: simple forecasts that every model must beat.

last value        the most recent value present
drift             the line from the first to the last value of the context, extrapolated
seasonal naive    the value one season earlier; once for each season, the main one without a number
moving average    the mean of the last season, or of the last ten points where there is no season
autoregression    a linear map of the last points, fitted by least squares on the training set and shared by all series
                  and targets; with the same strategy as the model
naive2            the last value after seasonal adjustment, where a test finds a season (M4 competition)
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from seqloom.core.rows import Json
from seqloom.tasks.forecasting.windows import SeriesWindows, WindowScale, fill_forward, window_scale

_AT_ONCE = 4096  # rows of the least-squares problem built at a time
_MOST_ROWS = 400_000  # of the least-squares problem; more are thinned out evenly
_MOST_LAGS = 512
_AVERAGED = 10  # points of the moving average where there is no season
_LONGEST = 5_000  # points that naive2 uses

Weights = np.ndarray  # (lags + 1, block): the oldest lag first, the intercept last


def simple_forecasts(
    windows: SeriesWindows, series: np.ndarray, ends: np.ndarray, season: int, others: Sequence[int] = ()
) -> Json:
    """(W, H, targets) of each baseline, in scaled units; with an empty history, the mean of the training set. `others`:
    further seasons."""
    horizon, context = windows.horizon, windows.context
    seen = fill_forward(windows.history(series, ends, max(context, season, *others, _AVERAGED)))
    steps = np.arange(1, horizon + 1)[:, None]
    last = seen[:, -1:]
    near = seen[:, -context:]
    first = np.argmax(np.isfinite(near), axis=1)[:, None]  # first value present
    slope = (last - np.take_along_axis(near, first, axis=1)) / np.maximum(1, near.shape[1] - 1 - first)
    span = season if season > 1 else _AVERAGED
    recent = windows.history(series, ends, span)
    there = np.isfinite(recent)
    mean = np.where(there, recent, 0.0).sum(1, keepdims=True) / np.maximum(1, there.sum(1, keepdims=True))
    found = {
        "last value": np.repeat(last, horizon, axis=1),
        "drift": last + slope * steps,
        "seasonal naive": _one_season_ago(seen, season, horizon),
        **{seasonal_name(other): _one_season_ago(seen, other, horizon) for other in others},
        "moving average": np.repeat(np.where(there.any(1, keepdims=True), mean, last), horizon, axis=1),
    }
    return {name: np.nan_to_num(values) for name, values in found.items()}


def seasonal_name(season: int) -> str:
    """The seasonal naive forecast of a season other than the main one."""
    return f"seasonal naive {season}"


def _one_season_ago(seen: np.ndarray, season: int, horizon: int) -> np.ndarray:
    found: np.ndarray = seen[:, seen.shape[1] - season + np.arange(horizon) % season]
    return found


class Autoregression:
    """`rule`: how each window is scaled before the linear map, and unscaled after it."""

    def __init__(self, weights: Weights, rule: WindowScale) -> None:
        self.weights, self.rule = weights, rule

    @property
    def lags(self) -> int:
        return len(self.weights) - 1

    def forecast(self, windows: SeriesWindows, series: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(W, H, targets), block by block, each fed back before the next; every block scales its own window."""
        found = np.nan_to_num(fill_forward(windows.history(series, ends, self.lags))).astype(np.float64)
        while found.shape[1] < self.lags + windows.horizon:
            near = found[:, found.shape[1] - self.lags :]
            centre, spread = window_scale(near, self.rule)
            scaled = ((near - centre) / spread).transpose(0, 2, 1)  # (W, N, lags)
            block = (scaled @ self.weights[:-1] + self.weights[-1]).transpose(0, 2, 1)
            found = np.concatenate((found, block * spread + centre), axis=1)
        result: np.ndarray = found[:, self.lags : self.lags + windows.horizon]
        return result

    def facts(self) -> Json:
        return {"weights": base64.b64encode(self.weights.astype("<f4").tobytes()).decode(), "lags": self.lags,
                "rule": self.rule}  # fmt: skip

    @classmethod
    def of(cls, facts: Json) -> Autoregression:
        flat = np.frombuffer(base64.b64decode(facts["weights"]), "<f4").astype(np.float64)
        return cls(flat.reshape(facts["lags"] + 1, -1), facts["rule"])


def fit_autoregression(values: Sequence[np.ndarray], lags: int, block: int, rule: WindowScale) -> Autoregression | None:
    """Least squares on all stretches of the series without missing values; None: there is no such stretch."""
    lags = min(lags, _MOST_LAGS)
    rows = sum(max(0, len(series) - lags - block + 1) * series.shape[1] for series in values)
    every = max(1, -(-rows // _MOST_ROWS))
    gram, moment = np.zeros((lags + 1, lags + 1)), np.zeros((lags + 1, block))
    for series in values:
        if len(series) < lags + block:
            continue
        cut = np.lib.stride_tricks.sliding_window_view(series, lags + block, axis=0)[::every]  # (rows, N, lags + block)
        size = max(1, _AT_ONCE // series.shape[1])
        for start in range(0, len(cut), size):
            part = cut[start : start + size].reshape(-1, lags + block)
            part = part[np.isfinite(part).all(1)]
            centre, spread = (found[:, :, 0] for found in window_scale(part[:, :lags, None], rule))
            scaled = ((part - centre) / spread).astype(np.float64)
            x = np.concatenate((scaled[:, :lags], np.ones((len(scaled), 1))), axis=1)
            gram += x.T @ x
            moment += x.T @ scaled[:, lags:]
    if not gram[-1, -1]:
        return None
    return Autoregression(np.linalg.lstsq(gram, moment, rcond=1e-12)[0], rule)


def naive2(history: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """(H,) from one raw history (T,): multiplicative seasonal factors if a test at the 90 % level finds a season.

    Missing values are interpolated linearly and excluded from the seasonal factors.
    """
    history = history[-_LONGEST:].astype(np.float64)
    places = np.flatnonzero(np.isfinite(history))
    if not len(places):
        return np.zeros(horizon)
    last = int(places[-1])
    there = np.isfinite(history[places[0] : last + 1])
    steps = np.arange(len(there))
    seen = np.interp(steps, steps[there], history[places[0] : last + 1][there])
    factors = _seasonal_factors(seen, season, there) if _is_seasonal(seen, season) else np.ones(season)
    ahead = factors[(len(history) - places[0] + np.arange(horizon)) % season]
    found: np.ndarray = seen[-1] / factors[(len(seen) - 1) % season] * ahead
    return found


def _is_seasonal(seen: np.ndarray, season: int) -> bool:
    """Whether the autocorrelation at the seasonal lag is significant (Bartlett's formula), as in M4."""
    if season < 2 or len(seen) < 3 * season or seen.min() <= 0 or np.ptp(seen) == 0:
        return False
    centred = seen - seen.mean()
    power = (centred**2).sum()
    lags = np.array([(centred[n:] * centred[:-n]).sum() / power for n in range(1, season + 1)])
    limit = 1.645 / np.sqrt(len(seen)) * np.sqrt(1 + 2 * (lags[:-1] ** 2).sum())
    return bool(abs(lags[-1]) > limit)


def _seasonal_factors(seen: np.ndarray, season: int, there: np.ndarray) -> np.ndarray:
    """Classical decomposition: mean ratio of each phase to a centred moving average, normalised to mean 1."""
    kernel = np.ones(season) / season if season % 2 else np.r_[0.5, np.ones(season - 1), 0.5] / season
    trend = np.convolve(seen, kernel, mode="valid")
    first = len(kernel) // 2
    counted = there[first : first + len(trend)].astype(np.float64)
    ratios = seen[first : first + len(trend)] / trend * counted
    phases = (first + np.arange(len(ratios))) % season
    counts = np.bincount(phases, counted, season)
    factors = np.where(counts > 0, np.bincount(phases, ratios, season) / np.maximum(counts, 1), 1.0)
    found: np.ndarray = factors / factors.mean()
    return found
