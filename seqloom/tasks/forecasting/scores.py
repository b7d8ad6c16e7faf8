"""Scores of forecasts, gathered window by window in bounded memory: overall, and by the steps ahead.

Errors are in scaled units (deviations of the training part) unless they say raw. What is missing is not asked for.

mse, mae, rmse   mean squared and absolute error, and the root of the first
smape            200 |y - f| / (|y| + |f|), per cent, of raw values; 0 where both are 0 (Makridakis 2000)
mase             absolute error over that of the seasonal naive forecast, one step ahead, on what came before this part
                 (Hyndman & Koehler 2006)
owa              mean of smape and mase, each over that of naive2, the benchmark of the M4 competition
pinball, crps    mean over the levels; and twice its integral over all levels, the trapezium rule between those asked
coverage         share of values between the lowest and the highest level
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.core.score import Score

SCORES = (
    Score("mse", ("MSE", "MSE"), unit=("squared deviations of the training part", "以训练部分的方差计"), compared=True),
    Score("mae", ("MAE", "MAE"), unit=("deviations of the training part", "以训练部分的标准差计"), compared=True),
    Score("rmse", ("RMSE", "RMSE"), unit=("deviations of the training part", "以训练部分的标准差计")),
    Score(
        "mase",
        ("MASE", "MASE"),
        unit=("errors of the seasonal naive forecast", "以季节性朴素预测的误差计"),
        compared=True,
    ),
    Score("smape", ("sMAPE, %", "sMAPE（%）"), unit=("per cent", "%"), compared=True),
    Score("owa", ("OWA", "OWA")),
    Score("crps", ("CRPS", "CRPS"), compared=True),
    Score("coverage", ("Coverage", "覆盖率"), higher_is_better=True),
)
PIECES = 100  # in which a part is scored, so that two models can be compared piece by piece

Sums = dict[str, list[np.ndarray]]


class Backtest:
    """`scale`: undoes the scaling of targets; `levels` of the bands, if there are some."""

    def __init__(self, scale: Any, horizon: int, levels: Sequence[float] = ()) -> None:
        self.scale, self.levels = scale, np.array(levels)
        targets = len(scale.targets)
        shape = (horizon, targets)
        self.count, self.squared, self.absolute = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.raw_squared, self.raw_absolute = np.zeros(targets), np.zeros(targets)
        self.pinball, self.covered, self.banded = np.zeros(len(levels)), 0.0, 0
        self.windows: Sums = {name: [] for name in ("mse", "mae", "smape", "mase")}  # sums of each window
        self.counts: Sums = {name: [] for name in self.windows}

    def add(self, found: np.ndarray, came: np.ndarray, naive: np.ndarray) -> None:
        """Forecasts and values (W, H, N); errors of the naive forecast (W, N)."""
        found, came = found.astype(np.float64), came.astype(np.float64)
        there = np.isfinite(came)
        error = np.where(there, found - came, 0.0)
        self.count += there.sum(0)
        self.squared += (error**2).sum(0)
        self.absolute += np.abs(error).sum(0)
        raw_found, raw_actual = self.scale.undo(found), self.scale.undo(came)
        raw_error = np.where(there, raw_found - raw_actual, 0.0)
        self.raw_squared += (raw_error**2).sum((0, 1))
        self.raw_absolute += np.abs(raw_error).sum((0, 1))
        size = np.abs(raw_found) + np.abs(raw_actual)
        smape = np.divide(200 * np.abs(raw_error), size, out=np.zeros_like(error), where=there & (size > 0))
        known = np.isfinite(naive) & (naive > 0)
        relative = np.abs(error) / np.where(known, naive, np.inf)[:, None]
        for name, values, counted in (
            ("mse", error**2, there), ("mae", np.abs(error), there), ("smape", smape, there),
            ("mase", relative, there & known[:, None]),
        ):  # fmt: skip
            self.windows[name].append(values.sum((1, 2)))
            self.counts[name].append(counted.sum((1, 2)))

    def add_bands(self, bands: np.ndarray, came: np.ndarray) -> None:
        """Quantiles (W, H, N, levels) of the values (W, H, N)."""
        there = np.isfinite(came)
        error = np.where(there, came, 0.0)[..., None] - bands.astype(np.float64)
        loss = np.maximum(self.levels * error, (self.levels - 1) * error)
        self.pinball += np.where(there[..., None], loss, 0.0).sum((0, 1, 2))
        self.covered += float((there & (came >= bands[..., 0]) & (came <= bands[..., -1])).sum())
        self.banded += int(there.sum())

    def scores(self) -> dict[str, Any]:
        total = {name: sum(float(part.sum()) for part in parts) for name, parts in self.windows.items()}
        counts = {name: sum(int(part.sum()) for part in parts) for name, parts in self.counts.items()}
        means = {name: total[name] / counts[name] if counts[name] else None for name in total}
        found: dict[str, Any] = {"mse": means["mse"], "mae": means["mae"]}
        found["rmse"] = None if means["mse"] is None else means["mse"] ** 0.5
        found |= {"mase": means["mase"], "smape": means["smape"]}
        if self.banded:
            each = self.pinball / self.banded
            low, high = self.levels[0], self.levels[-1]
            found |= {"pinball": float(each.mean()), "crps": 2 * _integral(self.levels, each)}
            if high > low:
                found |= {"coverage": self.covered / self.banded, "interval": round(float(high - low), 6)}
        found["raw"] = {name: self._raw(n) for n, name in enumerate(self.scale.targets)}
        return found

    def _raw(self, target: int) -> dict[str, float | None]:
        """In its own unit; None: nothing of it came."""
        of = self.count[:, target].sum()
        if not of:
            return {"mae": None, "rmse": None}
        absolute, squared = float(self.raw_absolute[target]), float(self.raw_squared[target])
        return {"mae": absolute / of, "rmse": (squared / of) ** 0.5}

    def by_horizon(self) -> dict[str, list[float | None]]:
        """Error of each step ahead, the first step first."""
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
    """(series, targets): mean absolute error of repeating what came a season before, up to each end; NaN: unknown."""
    found = []
    for series, end in zip(values, ends, strict=True):
        past = np.asarray(series[:end], dtype=np.float64)
        steps = np.abs(past[season:] - past[:-season]) if len(past) > season else past[:0]
        there = np.isfinite(steps)
        counts = there.sum(0)
        sums = np.where(there, steps, 0.0).sum(0)
        found.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return np.stack(found)


def owa(scores: dict[str, Any], naive2: dict[str, Any]) -> float | None:
    parts = [(scores.get(name), naive2.get(name)) for name in ("smape", "mase")]
    if any(ours is None or not theirs for ours, theirs in parts):
        return None
    return float(np.mean([ours / theirs for ours, theirs in parts]))  # type: ignore[operator]


def _integral(levels: np.ndarray, values: np.ndarray) -> float:
    """From 0 to 1, where a quantile costs nothing in the limit."""
    x, y = np.r_[0.0, levels, 1.0], np.r_[0.0, values, 0.0]
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum())
