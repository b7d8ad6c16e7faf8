"""Scores of forecasts, accumulated window by window in bounded memory: overall and by step ahead.

Errors are in scaled units (standard deviations of the training set) unless named raw. Missing values are ignored.

mse, mae, rmse   mean squared error, mean absolute error, root mean squared error
smape            200 |y - f| / (|y| + |f|), per cent, of raw values; 0 where both are 0 (Makridakis 2000)
mase             absolute error relative to that of the one-step seasonal naive forecast before this part
                 (Hyndman & Koehler 2006)
owa              mean of smape and mase, each relative to naive2, the benchmark of the M4 competition
mape             100 |y - f| / |y|, per cent, of raw values; undefined where y is 0: those are skipped
wape             100 sum |y - f| / sum |y|, per cent, of raw values; the mean over the targets, which may differ in unit
rmse_1           rmse one step ahead; reported where repeating the last value is better
pinball, crps    pinball loss, mean over the levels; CRPS as twice its integral, by the trapezoidal rule
coverage         share of actual values between the lowest and the highest level
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.core.rows import Json
from seqloom.core.score import Score

_DEVIATIONS = ("standard deviations of the training set", "以训练集标准差为单位")

SCORES = (
    Score("mse", ("MSE", "MSE"), unit=("variances of the training set", "以训练集方差为单位"), compared=True),
    Score("mae", ("MAE", "MAE"), unit=_DEVIATIONS, compared=True),
    Score("rmse", ("RMSE", "RMSE"), unit=_DEVIATIONS),
    Score("rmse_1", ("RMSE one step ahead", "第一步的 RMSE"), unit=_DEVIATIONS),
    Score(
        "mase",
        ("MASE", "MASE"),
        unit=("errors of the seasonal naive forecast", "以季节性朴素预测的误差为单位"),
        compared=True,
    ),
    Score("smape", ("sMAPE, %", "sMAPE（%）"), unit=("per cent", "%"), compared=True),
    Score("owa", ("OWA", "OWA")),
    Score("crps", ("CRPS", "CRPS"), compared=True),
    Score("coverage", ("Coverage", "覆盖率"), higher_is_better=True),
    Score("mape", ("MAPE, %", "MAPE（%）"), unit=("per cent", "%")),
    Score("wape", ("WAPE, %", "WAPE（%）"), unit=("per cent", "%")),
)
_ZERO = 1e-9  # of a standard deviation: below it an actual value is 0, up to the rounding errors of scaling
PIECES = 100  # partial scores per part, so that two models can be compared piece by piece

Sums = dict[str, list[np.ndarray]]


class Backtest:
    """`scale`: undoes the scaling of targets; `levels`: of the quantiles, if any."""

    def __init__(self, scale: Any, horizon: int, levels: Sequence[float] = ()) -> None:
        self.scale, self.levels = scale, np.array(levels)
        targets = len(scale.targets)
        shape = (horizon, targets)
        self.count, self.squared, self.absolute = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.raw_squared, self.raw_absolute, self.raw_size = np.zeros(targets), np.zeros(targets), np.zeros(targets)
        self.zeros = 0  # actual values of exactly 0
        self.pinball, self.covered, self.banded = np.zeros(len(levels)), 0.0, 0
        self.windows: Sums = {name: [] for name in ("mse", "mae", "smape", "mase", "mape")}  # sums over each window
        self.counts: Sums = {name: [] for name in self.windows}

    def add(self, found: np.ndarray, actual: np.ndarray, naive: np.ndarray) -> None:
        """Point forecasts and actual values (W, H, N); errors of the naive forecast (W, N)."""
        found, actual = found.astype(np.float64), actual.astype(np.float64)
        there = np.isfinite(actual)
        error = np.where(there, found - actual, 0.0)
        self.count += there.sum(0)
        self.squared += (error**2).sum(0)
        self.absolute += np.abs(error).sum(0)
        raw_found, raw_actual = self.scale.undo(found), self.scale.undo(actual)
        raw_error = np.where(there, raw_found - raw_actual, 0.0)
        self.raw_squared += (raw_error**2).sum((0, 1))
        self.raw_absolute += np.abs(raw_error).sum((0, 1))
        level = np.where(there, np.abs(raw_actual), 0.0)
        self.raw_size += level.sum((0, 1))
        nonzero = there & (level > _ZERO * self.scale.spread)
        self.zeros += int((there & ~nonzero).sum())
        mape = np.divide(100 * np.abs(raw_error), level, out=np.zeros_like(error), where=nonzero)
        size = np.abs(raw_found) + np.abs(raw_actual)
        smape = np.divide(200 * np.abs(raw_error), size, out=np.zeros_like(error), where=there & (size > 0))
        known = np.isfinite(naive) & (naive > 0)
        relative = np.abs(error) / np.where(known, naive, np.inf)[:, None]
        for name, values, counted in (
            ("mse", error**2, there), ("mae", np.abs(error), there), ("smape", smape, there),
            ("mase", relative, there & known[:, None]), ("mape", mape, nonzero),
        ):  # fmt: skip
            self.windows[name].append(values.sum((1, 2)))
            self.counts[name].append(counted.sum((1, 2)))

    def add_bands(self, bands: np.ndarray, actual: np.ndarray) -> None:
        """Quantiles (W, H, N, levels) and actual values (W, H, N)."""
        there = np.isfinite(actual)
        error = np.where(there, actual, 0.0)[..., None] - bands.astype(np.float64)
        loss = np.maximum(self.levels * error, (self.levels - 1) * error)
        self.pinball += np.where(there[..., None], loss, 0.0).sum((0, 1, 2))
        self.covered += float((there & (actual >= bands[..., 0]) & (actual <= bands[..., -1])).sum())
        self.banded += int(there.sum())

    def scores(self) -> Json:
        total = {name: sum(float(part.sum()) for part in parts) for name, parts in self.windows.items()}
        counts = {name: sum(int(part.sum()) for part in parts) for name, parts in self.counts.items()}
        means = {name: total[name] / counts[name] if counts[name] else None for name in total}
        found: Json = {"mse": means["mse"], "mae": means["mae"]}
        found["rmse"] = None if means["mse"] is None else means["mse"] ** 0.5
        found |= {"mase": means["mase"], "smape": means["smape"], "mape": means["mape"], "wape": self._wape()}
        if self.banded:
            each = self.pinball / self.banded
            low, high = self.levels[0], self.levels[-1]
            found |= {"pinball": float(each.mean()), "crps": 2 * _integral(self.levels, each)}
            if high > low:
                found |= {"coverage": self.covered / self.banded, "interval": round(float(high - low), 6)}
        found["raw"] = {name: self._raw(n) for n, name in enumerate(self.scale.targets)}
        return found

    def _wape(self) -> float | None:
        """None: every actual value is 0."""
        known = self.raw_size > 0
        return float(100 * (self.raw_absolute[known] / self.raw_size[known]).mean()) if known.any() else None

    def _raw(self, target: int) -> dict[str, float | None]:
        """In the unit of the data; None: no actual values."""
        of = self.count[:, target].sum()
        if not of:
            return {"mae": None, "rmse": None}
        absolute, squared = float(self.raw_absolute[target]), float(self.raw_squared[target])
        return {"mae": absolute / of, "rmse": (squared / of) ** 0.5}

    def by_horizon(self) -> dict[str, list[float | None]]:
        """Errors of each step ahead, in order."""
        count = self.count.sum(1)
        known, of = count > 0, np.maximum(count, 1)
        rmse, mae = np.sqrt(self.squared.sum(1) / of), self.absolute.sum(1) / of
        return {
            name: [float(f"{value:.6g}") if there else None for value, there in zip(values, known, strict=True)]
            for name, values in (("rmse", rmse), ("mae", mae))
        }

    def pieces(self, metric: str) -> list[float]:
        """Partial scores whose mean is the score."""
        squares = {"rmse": "mse"}.get(metric, metric)
        if squares not in self.windows:
            squares = "mse"
        sums, counts = np.concatenate(self.windows[squares]), np.concatenate(self.counts[squares])
        pieces = min(PIECES, len(sums))
        share = max(1.0, counts.sum() / pieces)
        return [float(part.sum() / share) for part in np.array_split(sums, pieces)]


def naive_errors(values: Sequence[np.ndarray], ends: Sequence[int], season: int) -> np.ndarray:
    """(series, targets): mean absolute error of repeating the value one season earlier, up to `ends`; NaN: unknown."""
    found = []
    for series, end in zip(values, ends, strict=True):
        past = np.asarray(series[:end], dtype=np.float64)
        steps = np.abs(past[season:] - past[:-season]) if len(past) > season else past[:0]
        there = np.isfinite(steps)
        counts = there.sum(0)
        sums = np.where(there, steps, 0.0).sum(0)
        found.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return np.stack(found)


def owa(scores: Json, naive2: Json) -> float | None:
    parts = [(scores.get(name), naive2.get(name)) for name in ("smape", "mase")]
    if any(ours is None or not theirs for ours, theirs in parts):
        return None
    return float(np.mean([ours / theirs for ours, theirs in parts]))  # type: ignore[operator]


def _integral(levels: np.ndarray, values: np.ndarray) -> float:
    """From level 0 to level 1, where the pinball loss tends to 0."""
    x, y = np.r_[0.0, levels, 1.0], np.r_[0.0, values, 0.0]
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum())
