"""Forecasts as rows of a file and as data for charts: after the end of every series, or from some points before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Json, Row
from seqloom.tasks.forecasting.windows import JoinedRows, SeriesWindows

_AT_ONCE = 64  # series per batch
_HISTORY = 3  # horizons of history in a chart

Windows = Callable[[Any, int], SeriesWindows]  # rows, number of points after their end with known covariates -> windows
Forecast = Callable[[SeriesWindows, tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray | None]]


class ForecastRows:
    """`back`: start this many points before the end and add the actual values."""

    def __init__(
        self, scale: Any, horizon: int, levels: Sequence[float], windows: Windows, forecast: Forecast, back: int = 0
    ) -> None:
        self.scale, self.horizon, self.levels = scale, horizon, levels
        self.windows, self.forecast, self.back = windows, forecast, back

    def rows(self, given: Iterable[Row]) -> Iterator[Row]:
        """One row per step of each series, in order."""
        spread = self.scale.spread
        for found in self.each(given):
            for step, time in enumerate(found["times"]):
                row: Row = ({"series": found["series"]} if found["series"] else {}) | {"step": step + 1, "time": time}
                for n, name in enumerate(self.scale.targets):
                    row[name] = _short(found["forecast"][step, n], spread[n])
                    if found["bands"] is not None:
                        row |= {
                            f"{name}_{level:g}": _short(found["bands"][step, n, k], spread[n])
                            for k, level in enumerate(self.levels)
                        }
                    if self.back:
                        row[f"{name}_actual"] = _exact(found["actual"][step, n])
                yield row

    def each(self, given: Iterable[Row]) -> Iterator[Json]:
        """Times and raw values of each series: forecast (H, N), bands (H, N, levels) or None, actual and history."""
        given = iter(given)
        while some := list(islice(given, _AT_ONCE)):
            rows = JoinedRows([row["rows"](self.scale) for row in some])
            lengths = np.array([len(values) for values in rows.values])
            if self.back >= lengths.min():
                raise _too_short(some[int(lengths.argmin())].get("series"), int(lengths.min()), self.back)
            ends = lengths - self.back
            windows = self.windows(rows, max(0, self.horizon - int((lengths - ends).min())))
            forecasts, bands = self.forecast(windows, (np.arange(len(ends)), ends))
            actual = self.scale.undo(windows.future(np.arange(len(ends)), ends))
            forecasts = self.scale.undo(forecasts)
            if bands is not None:
                bands = np.moveaxis(self.scale.undo(np.moveaxis(bands, -1, 0)), 0, -1)
            for n, end in enumerate(ends):
                after = rows.future_times(n, self.horizon)
                times = shown_times(np.concatenate((rows.times[n][end:], after))[: self.horizon], self.scale.frequency)
                first = max(0, int(end) - _HISTORY * self.horizon)
                yield {
                    "series": some[n].get("series"),
                    "times": times,
                    "forecast": forecasts[n],
                    "bands": None if bands is None else bands[n],
                    "actual": actual[n],
                    "history": self.scale.undo(rows.values[n][first:end]),
                    "history_times": shown_times(rows.times[n][first:end], self.scale.frequency),
                }


def _too_short(series: str | None, points: int, back: int) -> UserError:
    which = f"series {series!r}" if series else "the series"
    return UserError(f"--back {back}: {which} has {points:,} points, and at least one must remain before the forecast")


def shown_times(times: np.ndarray, frequency: str) -> list[Any]:
    """Times as people write them: a year, month or day, with the time of day where steps are shorter."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return [time.item() if times.dtype.kind == "i" else float(f"{time:.12g}") for time in times]
    coarse = {"year": "YMDs", "month": "MDs", "week": "Ds", "day": "Ds"}.get(frequency, "s")
    unit: Any = next(unit for unit in coarse if unit == "s" or (times == times.astype(f"datetime64[{unit}]")).all())
    return [str(text).replace("T", " ") for text in np.datetime_as_string(times, unit=unit)]


def _exact(value: float) -> float | None:
    """The value as read, without the rounding errors of scaling and unscaling; None: missing."""
    return float(f"{value:.12g}") if np.isfinite(value) else None


def _short(value: float, spread: float) -> float | None:
    """At least six significant digits, also relative to the spread of the series; None: missing."""
    if not np.isfinite(value):
        return None
    sizes = [math.floor(math.log10(size)) for size in (abs(value), spread) if size > 0]
    return round(float(value), 5 - min(sizes)) if sizes else float(value)
