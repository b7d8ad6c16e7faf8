"""Rolling backtests: forecasts of a model and of naive baselines against the actual values of many windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.order import spread
from seqloom.core.rows import Json
from seqloom.tasks.forecasting.baselines import Autoregression, naive2, simple_forecasts
from seqloom.tasks.forecasting.intervals import History, deviations, distances, few, independent_windows, multipliers
from seqloom.tasks.forecasting.scores import Backtest, naive_errors, owa
from seqloom.tasks.forecasting.windows import Places, SeriesWindows, window_scale

_AT_ONCE = 256  # windows forecast and scored together
_MEASURED = 2_000  # windows whose errors give the prediction intervals of a point forecaster
_INSIDE = 500  # windows before the part that are scored for comparison
_JUDGED = 5_000  # most histories that naive2 is computed for
_PADDED = 2_048  # points of history that a shorter series may be padded to

Rows = Any  # SeriesRows
Origins = tuple[np.ndarray, np.ndarray]  # series and origin of each window
Forecast = Callable[[Origins, bool], tuple[np.ndarray, np.ndarray | None]]  # points, and quantiles if True


def rolling(
    forecast: Forecast,
    windows: SeriesWindows,
    rows: Rows,
    origins: Origins,
    levels: Sequence[float] = (),
    drawn: int = 0,
) -> Backtest:
    """`levels`: of quantiles; empty: point forecasts only. `drawn`: number of windows sampled for quantiles; 0: all."""
    errors, test = _errors(rows), Backtest(rows.scale, windows.horizon, levels)
    for part in parts(origins):
        found, bands = forecast(part, bool(levels) and not drawn)
        actual = windows.future(*part)
        test.add(found, actual, errors[part[0]])
        if bands is not None:
            test.add_bands(bands, actual)
    if levels and drawn:
        count = len(origins[0])
        some = spread(min(count, drawn), count)
        for part in parts((origins[0][some], origins[1][some])):
            bands = forecast(part, True)[1]
            if bands is not None:
                test.add_bands(bands, windows.future(*part))
    return test


def extra_scores(
    forecast: Forecast,
    windows: SeriesWindows,
    rows: Rows,
    origins: Origins,
    test: Backtest,
    facts: Mapping[str, Any],
    stride: int = 1,
) -> Json:
    """Errors by step ahead, within this part and before it, and the scores of the naive baselines."""
    steps: Json = test.by_horizon()
    if len(before := windows.inside(stride)):
        inside = before.locate(before.some(min(_INSIDE, len(origins[0]))))
        steps["inside"] = rolling(forecast, windows, rows, inside).by_horizon()["rmse"]
    naive = naive_tests(windows, rows, origins, facts)
    steps["baselines"] = {name: found.by_horizon()["rmse"] for name, found in naive.items()}
    found: Json = {"horizon": steps, "baselines": {name: each.scores() for name, each in naive.items()}}
    if known := found["baselines"].get("naive2"):
        found["owa"] = owa(test.scores(), known)
        for each in found["baselines"].values():
            each["owa"] = owa(each, known)
    return found


def first_step(scores: Json) -> Json:
    """The scores, with the error one step ahead where repeating the last value is better: a mean over a long horizon
    hides it."""
    steps = scores["horizon"]
    ours, last = steps["rmse"][0], steps["baselines"]["last value"][0]
    if ours is None or last is None or ours <= last:
        return scores
    for name, found in scores["baselines"].items():
        found["rmse_1"] = steps["baselines"][name][0]
    note = f"one step ahead worse than repeating the last value (RMSE {ours:.4g}, {last:.4g})"
    return scores | {"rmse_1": ours, "protocol": f"{scores['protocol']}; {note}"}


def naive_tests(windows: SeriesWindows, rows: Rows, origins: Origins, facts: Mapping[str, Any]) -> dict[str, Backtest]:
    """Backtests of the naive baselines; `facts`: the fitted autoregression. naive2 only where it is not too slow."""
    errors, season = _errors(rows), max(1, rows.scale.season)
    others = [other for other in rows.scale.seasons if other != season]
    fitted = Autoregression.of(facts["autoregression"]) if "autoregression" in facts else None
    judged = len(origins[0]) * len(rows.scale.targets) <= _JUDGED
    tests: dict[str, Backtest] = {}
    for part in parts(origins):
        found = simple_forecasts(windows, *part, season, others)
        if fitted is not None:
            found["autoregression"] = fitted.forecast(windows, *part)
        if judged:
            found["naive2"] = _naive2(rows, part, season, windows.horizon)
        actual = windows.future(*part)
        for name, values in found.items():
            tests.setdefault(name, Backtest(rows.scale, windows.horizon)).add(values, actual, errors[part[0]])
    return tests


def margins(forecast: Forecast, windows: SeriesWindows, places: Places, levels: Sequence[float]) -> np.ndarray:
    """Quantiles of the errors of point forecasts at each step, (H, targets, levels), on the scale of the windows."""
    errors = []
    for part in parts(places.locate(places.some(_MEASURED))):
        spread = window_scale(windows.history(*part, windows.context), windows.scale)[1]
        errors.append((windows.future(*part) - forecast(part, False)[0]) / spread)
    every = np.concatenate(errors)
    every[:, ~np.isfinite(every).any(0)] = 0.0
    return np.moveaxis(np.nanquantile(every, levels, axis=0), 0, -1)


def factors(
    forecast: Forecast, windows: SeriesWindows, places: Places, levels: Sequence[float], drawn: int = 0, season: int = 1
) -> np.ndarray:
    """The factors of calibrated intervals, (H, targets, levels); `drawn`: at most so many windows, 0: any number."""
    errors, spaces = [], []
    for part in parts(places.locate(places.some(min(_MEASURED, drawn or _MEASURED)))):
        points, quantiles = forecast(part, True)
        errors.append(windows.future(*part) - points)
        spaces.append(distances(points, quantiles, deviations(windows, *part, season), len(levels)))
    counted = independent_windows(places, windows.horizon)
    history = naive_history(windows, places, season) if few(counted) else None
    return multipliers(np.concatenate(errors), np.concatenate(spaces), levels, counted, history)


def naive_history(windows: SeriesWindows, places: Places, season: int) -> History:
    """The last value and the seasonal naive forecast at these origins, and at all origins up to the last of them."""
    whole = windows.trained()
    valid, usual = (_naive_scores(windows, some.locate(some.some(_MEASURED)), season) for some in (places, whole))
    return History(valid, usual, independent_windows(whole, windows.horizon))


def _naive_scores(windows: SeriesWindows, origins: Origins, season: int) -> list[np.ndarray]:
    """Of each naive forecast, (W, H, targets); missing where less than a season precedes the origin."""
    found: list[list[np.ndarray]] = [[], []]
    for part in parts(origins):
        naive, actual = simple_forecasts(windows, *part, season), windows.future(*part)
        naive["seasonal naive"][part[1] < season] = np.nan
        for scores, name in zip(found, ("last value", "seasonal naive"), strict=True):
            scores.append(np.abs(actual - naive[name]) / deviations(windows, *part, season))
    return [np.concatenate(scores) for scores in found]


def short_series(part: str, windows: SeriesWindows, places: Places) -> list[str]:
    """Remarks on series without a window or with a shortened history; refuses a part without any window."""
    horizon, window, count = windows.horizon, windows.context + windows.horizon, len(windows.lengths)
    if not len(places):
        if part == "train":
            raise UserError(f"no series of the training set has more than task.horizon={horizon} points; lower it")
        raise UserError(f"the {part} split: {too_short(windows)}")
    longest = max(int(windows.lengths.max()), _PADDED)
    if part == "train" and windows.context > longest:
        raise UserError(
            f"task.context={windows.context:,}: no series of the training set is so long; set it to {longest}"
        )
    remarks = []
    if none := int((places.counts == 0).sum()):
        what = "trained on" if part == "train" else "scored"
        remarks.append(f"{none:,} of {count:,} {part} series are shorter than task.horizon={horizon} and not {what}")
    short = int(((windows.lengths < window) & (places.counts > 0)).sum())
    if part == "train" and short:
        which = f"{short:,} of {count:,} training series are shorter than context + horizon = {window}"
        remarks.append(f"{which}: one window each, with the history available")
    return remarks


def too_short(windows: SeriesWindows) -> str:
    longest = int((windows.lengths - windows.begins).max()) if len(windows.lengths) else 0
    return f"at most {longest:,} points, fewer than task.horizon={windows.horizon}; lower it or provide more points"


def gaps(rows: Rows) -> list[str]:
    values = sum(series.size for series in rows.values)
    missing = sum(int(np.isnan(series).sum()) for series in rows.values)
    return [f"{missing:,} of {values:,} values are missing: read as 0 and excluded from the loss"] if missing else []


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
    """Mean absolute error of the seasonal naive forecast before this part, (series, targets)."""
    ends = [begin or len(values) for begin, values in zip(rows.begins, rows.values, strict=True)]
    return naive_errors(rows.values, ends, max(1, rows.scale.season))
