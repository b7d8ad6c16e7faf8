"""Findings on series to be forecast, and the options that suit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Level
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource, open_series
from seqloom.data.shapes.series.roles import resolved
from seqloom.data.shapes.series.seasons import named
from seqloom.data.shapes.series.split import check_no_leak, clock_of, open_parts, scale_of

MUCH = 0.2  # share of a column that is missing
FAR = 10.0  # spreads from the median: an outlier
UNITS = 1000.0  # ratio of the spreads of two series
MOVED = 1.0  # spreads between the means of two splits
SHORT = 50  # training points
TAILS = 0.001  # share of points that may be outliers


def examine_series(data: Options) -> list[Finding]:
    """Read, split and scale the data as `fit` would."""
    try:
        data = resolved(data.train, data)
        whole = open_series(data.train, data)
        given = {name: spec for name, spec in (("valid", data.valid), ("test", data.test)) if spec}
        parts = open_parts(whole, data, {name: open_series(spec, data) for name, spec in given.items()})
        train = parts["train"]
        clock_of(train)
        scale_of(train, [*train.targets, *train.past, *train.known])  # refuses a column without values
        found = [
            *_sizes(whole, parts),
            *_clock(whole),
            *_seasons(train, data),
            *_missing(whole),
            *_columns(train),
            *_units(train),
            *_moves(parts),
        ]
        found += _leaks(whole, data)
    except UserError as error:
        return [Finding("error", str(error))]
    if all(finding.level == "ok" for finding in found):
        found.append(Finding("ok", "no problems found"))
    return found


def _sizes(whole: SeriesSource, parts: Mapping[str, SeriesSource]) -> Iterator[Finding]:
    lengths = sorted(whole.ends)
    span = f"{lengths[0]:,} points" if lengths[0] == lengths[-1] else f"{lengths[0]:,} to {lengths[-1]:,} points"
    yield Finding("ok", f"{whole.count:,} series of {span}; targets: {_names(whole.targets)}")
    sizes = ", ".join(f"{part.points:,} points for {_PURPOSES[name]}" for name, part in parts.items())
    yield Finding("ok", f"split in time: {sizes}")
    train = parts["train"]
    if short := [one.name for one, end in zip(train.series, train.ends, strict=True) if end < SHORT]:
        what = f"{len(short):,} series have" if whole.count > 1 else "the series has"
        advice = "a window (task.context + task.horizon) must fit; use smaller ones, or more points"
        yield Finding("warning", f"{what} fewer than {SHORT} training points{_some(short)}", advice)
    if lacking := whole.count - train.count:
        advice = "they can still be forecast; -o data.split_by=share splits each series by its own length"
        yield Finding("note", f"{lacking:,} series begin after the training period ends", advice)
    if whole.facts.empty:
        yield Finding("warning", f"{whole.facts.empty:,} series have no values", "they are left out")
    if train.facts.unused:
        advice = "they come after the last split; raise data.test_points, or drop data.train_points"
        yield Finding("note", f"{train.facts.unused:,} points are not used", advice)
    if whole.facts.left_out:
        yield Finding("note", f"non-numeric columns are left out: {_names(whole.facts.left_out)}")


def _clock(whole: SeriesSource) -> Iterator[Finding]:
    clock, facts = whole.clock, whole.facts
    if clock is None:
        yield Finding("warning", "no series has two points, so the frequency is unknown", "give longer series")
        return
    rows = "times increase without duplicates" if whole.dated else "lines are counted, as there is no time column"
    yield Finding("ok", f"frequency: {clock}; {rows}")
    if facts.gaps:
        advice = "gaps are not imputed; if time does not matter, --columns time=line counts rows instead"
        yield Finding(
            "note", f"{facts.gaps:,} gaps, filled with {facts.filled:,} missing rows{_weekends(whole)}", advice
        )
    if clock.unit in ("minute", "hour", "day") and not whole.calendar:
        yield Finding("note", "no calendar features", "-o data.calendar=auto adds hour, weekday and time of year")


def _seasons(train: SeriesSource, data: Options) -> Iterator[Finding]:
    if train.seasons or data.seasons is not None:
        yield Finding("ok", f"{named(train.given or ())}, in points")
    else:
        yield Finding("ok", "no season found in the training set; data.season=N sets one")


def _missing(whole: SeriesSource) -> Iterator[Finding]:
    rows = max(1, whole.facts.rows)
    for column, count in whole.facts.missing.items():
        level: Level = "warning" if count > MUCH * rows else "note"
        known = column in whole.known
        advice = "the mean is used instead" if known else "they are not imputed, and excluded from losses and scores"
        yield Finding(level, f"{column}: {count:,} values ({count / rows:.1%}) are missing", advice)
    if whole.facts.ahead:
        kept = "their known covariates are used for forecasts" if whole.known else "they are left out"
        yield Finding("note", f"{whole.facts.ahead:,} rows come after the last target value", kept)


def _columns(train: SeriesSource) -> Iterator[Finding]:
    columns = [*train.targets, *train.past, *train.known]
    values = train.points_of(columns)
    lows, highs = np.nanmin(values, 0), np.nanmax(values, 0)
    if still := [name for name, low, high in zip(columns, lows, highs, strict=True) if low == high]:
        level: Level = "error" if set(train.targets) <= set(still) else "warning"
        yield Finding(level, f"constant in the training set: {_names(still)}", "leave them out: they add nothing")
    elif constant := train.constant():
        advice = "any model forecasts them perfectly, so scores will look too good"
        yield Finding("note", f"{len(constant):,} series never change in the training set{_some(constant)}", advice)
    for column in columns:
        far = _outliers(train, column)
        if 0 < len(far) <= TAILS * len(values) + 1:
            advice = "fix errors or leave their cells empty; if the values are real, use -o data.scale=robust"
            worst = far[np.abs(far).argmax()]
            yield Finding("note", f"{column}: {len(far):,} outliers, such as {worst:g}", advice)


def _outliers(train: SeriesSource, column: str) -> np.ndarray:
    """Values many spreads from the median of their series."""
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
    """All series share one scale."""
    if train.count < 2:
        return
    for column in train.targets:
        spreads = np.array([_deviation(one.points_of([column])) for one in train.each()])
        moving = spreads[spreads > 0]
        if len(moving) > 1 and moving.max() > UNITS * moving.min():
            times = moving.max() / moving.min()
            advice = "all series share one scale; -o task.window_scale=standard scales each window by itself"
            yield Finding("warning", f"{column}: some series vary {times:,.0f} times as much as others", advice)


def _moves(parts: Mapping[str, SeriesSource]) -> Iterator[Finding]:
    """How far the mean of each split is from that of the training set."""
    train = parts["train"]
    centre, spread = np.nanmean(train.points_of(train.targets), 0), np.nanstd(train.points_of(train.targets), 0)
    for name in ("valid", "test"):
        if name not in parts:
            continue
        values = parts[name].points_of(train.targets)
        if lacking := [c for c, there in zip(train.targets, (~np.isnan(values)).any(0), strict=True) if not there]:
            message = f"the {name} split has no values of {_names(lacking)}"
            yield Finding("warning", message, "nothing can be scored there")
            continue
        away = (np.nanmean(values, 0) - centre) / np.where(spread > 0, spread, 1.0)
        beyond = [f"{c} by {a:+.1f}" for c, a in zip(train.targets, away, strict=True) if abs(a) > MOVED]
        if beyond:
            advice = "there may be a trend; -o task.window_scale=last forecasts changes instead of levels"
            shifts = ", ".join(beyond[:5])
            message = f"the mean of the {name} split differs from that of training, in standard deviations: {shifts}"
            yield Finding("warning", message, advice)


def _leaks(whole: SeriesSource, data: Options) -> Iterator[Finding]:
    apart = tuple(name for name in ("valid", "test") if getattr(data, name))
    if moved := check_no_leak(whole, data, apart):
        message = f"changing the values after training changes {', '.join(moved)}"
        yield Finding("error", message, "this is a bug in seqloom: please report it")
    else:
        unmoved = "neither the split nor the scale nor the seasons"
        yield Finding("ok", f"changing the values after training changes {unmoved}: nothing leaks")


_PURPOSES = {"train": "training", "valid": "validation", "test": "testing"}


def _weekends(whole: SeriesSource) -> str:
    """Markets close: say so if all missing days are Saturdays and Sundays."""
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
