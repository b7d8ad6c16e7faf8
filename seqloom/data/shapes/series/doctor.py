"""What is wrong with series that are to be forecast, and what suits them, before any training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Level
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource, open_series
from seqloom.data.shapes.series.split import check_no_leak, open_parts, scale_of

MUCH = 0.2  # of a column, missing
FAR = 10.0  # spreads from the centre: an outlier
UNITS = 1000.0  # times the spread of one series over that of another
MOVED = 1.0  # spreads between the means of two parts
SHORT = 50  # points to train on
TAILS = 0.001  # share of points that may lie far out


def examine_series(data: Options) -> list[Finding]:
    """Read it, cut it and scale it as `fit` would."""
    try:
        whole = open_series(data.train, data)
        given = {name: spec for name, spec in (("valid", data.valid), ("test", data.test)) if spec}
        parts = open_parts(whole, data, {name: open_series(spec, data) for name, spec in given.items()})
        train = parts["train"]
        scale_of(train, [*train.targets, *train.past, *train.known])  # refuses a column without any value
        found = [
            *_sizes(whole, parts),
            *_clock(whole),
            *_missing(whole),
            *_columns(train),
            *_units(train),
            *_moves(parts),
        ]
        found += _leaks(whole, data)
    except UserError as error:
        return [Finding("error", str(error))]
    if all(finding.level == "ok" for finding in found):
        found.append(Finding("ok", "nothing wrong found"))
    return found


def _sizes(whole: SeriesSource, parts: Mapping[str, SeriesSource]) -> Iterator[Finding]:
    lengths = sorted(whole.ends)
    span = f"{lengths[0]:,} points" if lengths[0] == lengths[-1] else f"{lengths[0]:,} to {lengths[-1]:,} points"
    yield Finding("ok", f"{whole.count:,} series of {span}; forecast: {_names(whole.targets)}")
    sizes = ", ".join(f"{part.points:,} points to {_VERBS[name]}" for name, part in parts.items())
    yield Finding("ok", f"cut in time: {sizes}")
    train = parts["train"]
    if short := [one.name for one, end in zip(train.series, train.ends, strict=True) if end < SHORT]:
        what = f"{len(short):,} series have" if whole.count > 1 else "the series has"
        advice = "a window (task.context + task.horizon) must fit; smaller ones, or more points"
        yield Finding("warning", f"{what} fewer than {SHORT} points to train on{_some(short)}", advice)
    if lacking := whole.count - train.count:
        advice = "they are forecast all the same; -o data.split_by=share cuts each in its own time"
        yield Finding("note", f"{lacking:,} series begin after the training part ends", advice)
    if whole.facts.empty:
        yield Finding("warning", f"{whole.facts.empty:,} series have no value at all", "they are left out")
    if train.facts.unused:
        advice = "they are after the last part; raise data.test_points, or leave data.train_points out"
        yield Finding("note", f"{train.facts.unused:,} points are not used", advice)
    if whole.facts.left_out:
        yield Finding("note", f"columns without numbers are left out: {_names(whole.facts.left_out)}")


def _clock(whole: SeriesSource) -> Iterator[Finding]:
    clock, facts = whole.clock, whole.facts
    if clock is None:
        yield Finding("warning", "no series has two points: its clock is not known", "give longer series")
        return
    rows = "times rise, none is there twice" if whole.dated else "lines are counted, for there is no column of times"
    yield Finding("ok", f"clock: {clock}; {rows}")
    if facts.gaps:
        advice = "they count as missing, and are not invented; if time does not matter, -o data.time=line counts rows"
        yield Finding(
            "note", f"{facts.gaps:,} gaps, filled with {facts.filled:,} missing rows{_weekends(whole)}", advice
        )
    if whole.season > 1:
        yield Finding("ok", f"a season has {whole.season} points")
    else:
        advice = "if there is one: -o data.season=N, for the seasonal naive guess and MASE"
        yield Finding("note", "no season is known", advice)
    if clock.unit in ("minute", "hour", "day") and not whole.calendar:
        yield Finding("note", "no inputs from the calendar", "-o data.calendar=auto adds hour, weekday, time of year")


def _missing(whole: SeriesSource) -> Iterator[Finding]:
    rows = max(1, whole.facts.rows)
    for column, count in whole.facts.missing.items():
        level: Level = "warning" if count > MUCH * rows else "note"
        role = (
            "the mean stands for it" if column in whole.known else "it is not invented; losses and scores leave it out"
        )
        yield Finding(level, f"{column}: {count:,} values ({count / rows:.1%}) are missing", role)
    if whole.facts.ahead:
        kept = "their known columns are used for forecasts" if whole.known else "they are left out"
        yield Finding("note", f"{whole.facts.ahead:,} rows after the last value of a target", kept)


def _columns(train: SeriesSource) -> Iterator[Finding]:
    columns = [*train.targets, *train.past, *train.known]
    values = train.points_of(columns)
    lows, highs = np.nanmin(values, 0), np.nanmax(values, 0)
    if still := [name for name, low, high in zip(columns, lows, highs, strict=True) if low == high]:
        level: Level = "error" if set(train.targets) <= set(still) else "warning"
        yield Finding(level, f"never change in the training part: {_names(still)}", "leave them out: they tell nothing")
    elif constant := train.constant():
        advice = "any model forecasts them; scores look better than they are"
        yield Finding("note", f"{len(constant):,} series never change in the training part{_some(constant)}", advice)
    for column in columns:
        far = _far_out(train, column)
        if 0 < len(far) <= TAILS * len(values) + 1:
            advice = "slips? mend them or leave the cells empty; else -o data.scale=robust, which they do not move"
            worst = far[np.abs(far).argmax()]
            yield Finding("note", f"{column}: {len(far):,} values lie far from all others, like {worst:g}", advice)


def _far_out(train: SeriesSource, column: str) -> np.ndarray:
    """What lies many spreads from the middle of its series."""
    found = [np.zeros(0)]
    for one in train.each():
        values = one.points_of([column])[:, 0]
        values = values[~np.isnan(values)]
        if len(values):
            low, middle, high = np.percentile(values, [25, 50, 75])
            width = (high - low) / 1.349 or values.std()
            found.append(values[np.abs(values - middle) > FAR * width])
    return np.concatenate(found)


def _units(train: SeriesSource) -> Iterator[Finding]:
    """One scale is made for all series."""
    if train.count < 2:
        return
    for column in train.targets:
        spreads = np.array([_deviation(one.points_of([column])) for one in train.each()])
        moving = spreads[spreads > 0]
        if len(moving) > 1 and moving.max() > UNITS * moving.min():
            times = moving.max() / moving.min()
            advice = "one scale is made for all; -o task.window_scale=standard scales each window by itself"
            yield Finding("warning", f"{column}: some series move {times:,.0f} times as much as others", advice)


def _moves(parts: Mapping[str, SeriesSource]) -> Iterator[Finding]:
    """How far each part lies from the training part."""
    train = parts["train"]
    centre, spread = np.nanmean(train.points_of(train.targets), 0), np.nanstd(train.points_of(train.targets), 0)
    for name in ("valid", "test"):
        if name not in parts:
            continue
        values = parts[name].points_of(train.targets)
        if lacking := [c for c, there in zip(train.targets, (~np.isnan(values)).any(0), strict=True) if not there]:
            yield Finding(
                "warning", f"the {name} part has no value of {_names(lacking)}", "nothing can be scored there"
            )
            continue
        away = (np.nanmean(values, 0) - centre) / np.where(spread > 0, spread, 1.0)
        beyond = [f"{c} by {a:+.1f}" for c, a in zip(train.targets, away, strict=True) if abs(a) > MOVED]
        if beyond:
            advice = "there is a trend; -o task.window_scale=last forecasts changes instead of levels"
            what = f"the mean of the {name} part lies off that of training, in deviations: {', '.join(beyond[:5])}"
            yield Finding("warning", what, advice)


def _leaks(whole: SeriesSource, data: Options) -> Iterator[Finding]:
    apart = tuple(name for name in ("valid", "test") if getattr(data, name))
    if moved := check_no_leak(whole, data, apart):
        yield Finding(
            "error", f"other values after training move {', '.join(moved)}", "this is a fault of seqloom: report it"
        )
    else:
        yield Finding("ok", "other values after training change neither the cut nor the scale: nothing leaks")


_VERBS = {"train": "train on", "valid": "validate on", "test": "test on"}


def _weekends(whole: SeriesSource) -> str:
    """Markets close: say so when all that lacks are Saturdays and Sundays."""
    if whole.clock is None or str(whole.clock) != "day":
        return ""
    lacking = [one.times[: one.ends][np.isnan(one.values[: one.ends]).all(1)] for one in whole.series]
    days = (np.concatenate(lacking).astype("datetime64[D]").astype(np.int64) + 3) % 7
    return ", all of them weekends" if len(days) and (days >= 5).all() else ""


def _deviation(values: np.ndarray) -> float:
    there = values[~np.isnan(values)]
    return float(there.std()) if len(there) else 0.0


def _some(names: list[str]) -> str:
    return f": {_names(names)}" if any(names) else ""


def _names(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
