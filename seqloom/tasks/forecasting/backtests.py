"""Rolling backtests: forecasts of many windows against what came, of a model and of what needs no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.order import spread
from seqloom.tasks.forecasting.baselines import Autoregression, naive2, simple_forecasts
from seqloom.tasks.forecasting.scores import Backtest, naive_errors, owa
from seqloom.tasks.forecasting.windows import Places, SeriesWindows, window_scale

_AT_ONCE = 256  # windows that are forecast and scored together
_MEASURED = 2_000  # windows whose errors make the intervals of a model that says none
_INSIDE = 500  # windows before a part that are scored beside it
_JUDGED = 5_000  # histories that naive2 is asked about, at most

Rows = Any  # SeriesRows
Origins = tuple[np.ndarray, np.ndarray]  # series and origin of each window
Forecast = Callable[[Origins, bool], tuple[np.ndarray, np.ndarray | None]]  # guesses, and quantiles if they are wanted


def rolling(
    forecast: Forecast,
    windows: SeriesWindows,
    rows: Rows,
    origins: Origins,
    levels: Sequence[float] = (),
    drawn: int = 0,
) -> Backtest:
    """`levels`: of quantiles; none: guesses alone. `drawn`: so many windows have them, for they take long; 0: all."""
    errors, test = _errors(rows), Backtest(rows.scale, windows.horizon, levels)
    for part in parts(origins):
        found, bands = forecast(part, bool(levels) and not drawn)
        came = windows.future(*part)
        test.add(found, came, errors[part[0]])
        if bands is not None:
            test.add_bands(bands, came)
    if levels and drawn:
        count = len(origins[0])
        some = spread(min(count, drawn), count)
        for part in parts((origins[0][some], origins[1][some])):
            bands = forecast(part, True)[1]
            if bands is not None:
                test.add_bands(bands, windows.future(*part))
    return test


def beside(
    forecast: Forecast,
    windows: SeriesWindows,
    rows: Rows,
    origins: Origins,
    test: Backtest,
    facts: Mapping[str, Any],
    stride: int = 1,
) -> dict[str, Any]:
    """What stands beside the scores of a test: errors by the steps ahead, also before this part, and the same of naive
    forecasts."""
    steps: dict[str, Any] = test.by_horizon()
    if len(before := windows.inside(stride)):
        inside = before.locate(before.some(min(_INSIDE, len(origins[0]))))
        steps["inside"] = rolling(forecast, windows, rows, inside).by_horizon()["rmse"]
    naive = naive_tests(windows, rows, origins, facts)
    steps["baselines"] = {name: found.by_horizon()["rmse"] for name, found in naive.items()}
    found: dict[str, Any] = {"horizon": steps, "baselines": {name: each.scores() for name, each in naive.items()}}
    if known := found["baselines"].get("naive2"):
        found["owa"] = owa(test.scores(), known)
        for each in found["baselines"].values():
            each["owa"] = owa(each, known)
    return found


def naive_tests(windows: SeriesWindows, rows: Rows, origins: Origins, facts: Mapping[str, Any]) -> dict[str, Backtest]:
    """Of every naive forecast; `facts`: what the autoregression has learned. naive2 only where there is time for it."""
    errors, season = _errors(rows), max(1, rows.scale.season)
    fitted = Autoregression.of(facts["autoregression"]) if "autoregression" in facts else None
    judged = len(origins[0]) * len(rows.scale.targets) <= _JUDGED
    tests: dict[str, Backtest] = {}
    for part in parts(origins):
        found = simple_forecasts(windows, *part, season)
        if fitted is not None:
            found["autoregression"] = fitted.forecast(windows, *part)
        if judged:
            found["naive2"] = _naive2(rows, part, season, windows.horizon)
        came = windows.future(*part)
        for name, values in found.items():
            tests.setdefault(name, Backtest(rows.scale, windows.horizon)).add(values, came, errors[part[0]])
    return tests


def margins(forecast: Forecast, windows: SeriesWindows, places: Places, levels: Sequence[float]) -> np.ndarray:
    """Quantiles of how far guesses are off at each step, (H, targets, levels), on the scale of the windows."""
    errors = []
    for part in parts(places.locate(places.some(_MEASURED))):
        spread = window_scale(windows.history(*part, windows.context), windows.scale)[1]
        errors.append((windows.future(*part) - forecast(part, False)[0]) / spread)
    every = np.concatenate(errors)
    every[:, ~np.isfinite(every).any(0)] = 0.0
    return np.moveaxis(np.nanquantile(every, levels, axis=0), 0, -1)


def shortness(part: str, windows: SeriesWindows, places: Places) -> list[str]:
    """What of a part has no window, or one with less history; refuses a part without any."""
    horizon, window, count = windows.horizon, windows.context + windows.horizon, len(windows.lengths)
    if not len(places):
        if part == "train":
            raise UserError(f"no series of the training part has more than task.horizon={horizon} points; lower it")
        raise UserError(f"the {part} part: {too_short(windows)}")
    remarks = []
    if none := int((places.counts == 0).sum()):
        what = "trained on" if part == "train" else "scored"
        remarks.append(f"{none:,} of {count:,} {part} series are shorter than task.horizon={horizon}, not {what}")
    short = int(((windows.lengths < window) & (places.counts > 0)).sum())
    if part == "train" and short:
        told = f"{short:,} of {count:,} training series are shorter than context + horizon = {window}"
        remarks.append(f"{told}: one window each, with the history there is")
    return remarks


def too_short(windows: SeriesWindows) -> str:
    longest = int((windows.lengths - windows.begins).max()) if len(windows.lengths) else 0
    return f"at most {longest:,} points, fewer than task.horizon={windows.horizon}; lower it, or give more points"


def gaps(rows: Rows) -> list[str]:
    values = sum(series.size for series in rows.values)
    missing = sum(int(np.isnan(series).sum()) for series in rows.values)
    return [f"{missing:,} of {values:,} values are missing: read as 0, and not asked for"] if missing else []


def parts(origins: Origins, size: int = _AT_ONCE) -> Iterator[Origins]:
    series, ends = origins
    for start in range(0, len(series), size):
        yield series[start : start + size], ends[start : start + size]


def _naive2(rows: Rows, origins: Origins, season: int, horizon: int) -> np.ndarray:
    found = []
    for series, end in zip(*origins, strict=True):
        raw = rows.scale.undo(rows.values[series][:end])
        found.append(np.stack([naive2(raw[:, n], season, horizon) for n in range(raw.shape[1])], axis=1))
    result: np.ndarray = rows.scale.apply(np.stack(found))
    return result


def _errors(rows: Rows) -> np.ndarray:
    """Of the seasonal naive forecast on what came before this part, (series, targets)."""
    ends = [begin or len(values) for begin, values in zip(rows.begins, rows.values, strict=True)]
    return naive_errors(rows.values, ends, max(1, rows.scale.season))
