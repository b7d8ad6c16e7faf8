"""Series cut in time: first what is trained on, then what is validated on, then what is tested on; never shuffled.

A part keeps what stands before it as history. Parts may also come from files of their own, each of which goes on from
where the one before it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.shapes.series.clock import NEARLY, Clock
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import LINES, Series, SeriesSource
from seqloom.data.split import shares_of


def open_parts(whole: SeriesSource, data: Options, given: Mapping[str, SeriesSource]) -> dict[str, SeriesSource]:
    """Train, valid and test: those `given` as files of their own, the others cut from the whole."""
    if "valid" in given and "test" not in given and (data.test_fraction or data.test_points):
        raise UserError(
            "data.valid is a file of its own, and a test part cut from data.train would lie before it; give data.test "
            "too, or neither"
        )
    parts = split_series(whole, data, apart=tuple(given))
    before = whole
    for name in ("valid", "test"):
        if name in given:
            parts[name] = join(before, given[name])
            before = _with(before, parts[name])
    return parts


def split_series(whole: SeriesSource, data: Options, apart: tuple[str, ...] = ()) -> dict[str, SeriesSource]:
    """By a number of points of each series, by share of each, or at the same moment in all; `apart`: not wanted."""
    valid = 0.0 if "valid" in apart else data.valid_fraction
    test = 0.0 if "test" in apart else data.test_fraction
    points = (
        data.train_points,
        *(0 if name in apart else getattr(data, f"{name}_points") for name in ("valid", "test")),
    )
    shares_of("points", valid, test)
    lengths = np.array(whole.ends)
    if any(points):
        bounds = _by_points(whole, lengths, points, valid, test)
    elif data.split_by == "share" or not whole.dated:
        bounds = _by_share(lengths, valid, test)
    else:
        bounds = _at_one_moment(whole, lengths, valid, test)
    wanted = {"train": True, "valid": bool(valid or points[1]), "test": bool(test or points[2])}
    begins = np.zeros_like(lengths)
    parts = {}
    for (name, there), ends in zip(wanted.items(), bounds, strict=True):
        if there:
            parts[name] = whole.part(name, begins.tolist(), ends.tolist())
            if not parts[name].series:
                way_out = "give more points, a larger share, or a file of its own"
                raise UserError(f"{whole.name}: too few points ({whole.points:,}) for a {name} part; {way_out}")
        begins = ends
    unused = int((lengths - begins).sum())
    return {name: replace(part, facts=replace(part.facts, unused=unused)) for name, part in parts.items()}


def join(before: SeriesSource, after: SeriesSource) -> SeriesSource:
    """What stands in a file of its own, with the points before it as history; an overlap is refused.

    Where no column says when, a file goes on where the one before it ends. One that begins so long after it that more
    steps lie between them than both have has no history.
    """
    places = after.places(before.columns)
    clock = _same_clock(before, after)
    known = {one.name: replace(one, ends=end) for one, end in zip(before.series, before.ends, strict=True)}
    series, begins, gaps, apart = [], [], [], 0
    for one in after.series:
        old, new = known.get(one.name), replace(one, values=one.values[:, places])
        gap = _gap(old, one, clock, (before.name, after.name)) if old and before.dated else 0
        if old and gap > old.ends + len(one.times):
            old, gap, apart = None, 0, apart + 1
        series.append(_follow(old, new, gap, clock) if old else new)
        begins.append(old.ends + gap if old else 0)
        gaps.append(gap)
    facts, jumps = after.facts, sum(gap > 0 for gap in gaps)
    facts = replace(facts, apart=apart, gaps=facts.gaps + jumps, filled=facts.filled + sum(gaps))
    ends = [one.ends for one in series]
    return replace(before, name=after.name, clock=clock, series=series, begins=begins, ends=ends, facts=facts)


def _with(before: SeriesSource, after: SeriesSource) -> SeriesSource:
    """All that is known by now: series that go on, and those that a file passes over."""
    on = {one.name for one in after.series}
    rest = [(one, end) for one, end in zip(before.series, before.ends, strict=True) if one.name not in on]
    series, ends = [*after.series, *(one for one, _ in rest)], [*after.ends, *(end for _, end in rest)]
    return replace(after, series=series, begins=[0] * len(series), ends=ends)


def _gap(old: Series, one: Series, clock: Clock, names: tuple[str, str]) -> int:
    """Steps that lack between the last point of one file and the first of the next."""
    last, first = old.times[old.ends - 1], one.times[0]
    if first <= last:
        raise UserError(
            f"{names[1]}: {one.shown} begins at {first}, and {names[0]} goes on until {last}; parts must not overlap: "
            "leave out what is in both"
        )
    steps = float(clock.steps(np.array([last, first]))[0])
    if abs(steps - round(steps)) > NEARLY:
        raise UserError(f"{names[1]}: {one.shown} begins at {first}, off the clock of {clock} that was last at {last}")
    return round(steps) - 1


def _follow(old: Series, one: Series, gap: int, clock: Clock) -> Series:
    between = np.full((gap, one.values.shape[1]), np.nan)
    values = np.concatenate((old.values[: old.ends], between, one.values))
    times = np.concatenate((old.times[: old.ends], clock.after(old.times[old.ends - 1], gap + len(one.times))))
    return Series(one.name, times, values, old.ends + gap + one.ends)


def scale_of(train: SeriesSource, columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread of each column over all points of the training part; what never changes has a spread of 1."""
    values = train.points_of(columns)
    if lacking := [name for name, there in zip(columns, (~np.isnan(values)).any(0), strict=True) if not there]:
        raise UserError(f"{train.name}: column {lacking[0]!r} has no value in the training part; leave it out")
    if train.scale == "none" or not columns:
        return np.zeros(len(columns)), np.ones(len(columns))
    largest = np.nanmax(np.abs(values), axis=0)
    largest = np.where(largest > 0, largest, 1.0)
    values = values / largest  # their squares are not too large, nor too small
    if train.scale == "robust":
        low, centre, high = np.nanpercentile(values, [25, 50, 75], axis=0)
        spread = (high - low) / 1.349  # of a normal distribution: its deviation
        deviation = np.nanstd(values, axis=0)
        spread = np.where(spread > 1e-8 * np.abs(centre), spread, deviation)  # mostly one value, but not always
    else:
        centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    centre, spread = centre * largest, np.where(spread > 1e-8 * np.abs(centre), spread * largest, 1.0)  # less: rounding
    if strange := [name for name, size in zip(columns, spread, strict=True) if not np.isfinite(size)]:
        raise UserError(f"{train.name}: the numbers of column {strange[0]!r} are too large; give them in another unit")
    return centre, spread


def changed_after(source: SeriesSource, moments: Mapping[str, int], seed: int = 0) -> SeriesSource:
    """The same series with other numbers from a row on, by name; nothing that is missing appears or goes."""
    chance = np.random.default_rng(seed)
    series = []
    for one in source.series:
        values = one.values.copy()
        later = values[moments.get(one.name, len(values)) :]
        later *= -3.0
        later += chance.normal(100.0, 50.0, later.shape)
        series.append(replace(one, values=values))
    return replace(source, series=series)


def check_no_leak(whole: SeriesSource, data: Options, apart: tuple[str, ...] = ()) -> list[str]:
    """What of the cut, of the training points and of the scale moves when all that comes after training is changed."""
    parts = split_series(whole, data, apart)
    moments = {one.name: end for one, end in zip(parts["train"].series, parts["train"].ends, strict=True)}
    moments = {one.name: moments.get(one.name, 0) for one in whole.series}
    others = split_series(changed_after(whole, moments), data, apart)
    return list(_moved(parts, others))


def _moved(parts: Mapping[str, SeriesSource], others: Mapping[str, SeriesSource]) -> Iterator[str]:
    for name, part in parts.items():
        if (part.begins, part.ends) != (others[name].begins, others[name].ends):
            yield f"where the {name} part is cut"
    train, other = parts["train"], others["train"]
    if train.hash != other.hash:
        yield "the training points"
    columns = [*train.targets, *train.past, *train.known]
    if any((one != two).any() for one, two in zip(scale_of(train, columns), scale_of(other, columns), strict=True)):
        yield "the scale"


def _by_share(lengths: np.ndarray, valid: float, test: float) -> list[np.ndarray]:
    train = np.floor(lengths * (1 - valid - test) + 1e-6).astype(int)
    return [train, np.floor(lengths * (1 - test) + 1e-6).astype(int), lengths]


def _at_one_moment(whole: SeriesSource, lengths: np.ndarray, valid: float, test: float) -> list[np.ndarray]:
    """At moments that leave about these shares of all points behind them."""
    times = np.sort(np.concatenate([one.times[: one.ends] for one in whole.series]))
    bounds = []
    for share in (1 - valid - test, 1 - test):
        place = int(len(times) * share + 1e-6)
        if place >= len(times):
            bounds.append(lengths)
        else:
            bounds.append(np.array([np.searchsorted(one.times[: one.ends], times[place]) for one in whole.series]))
    return [*bounds, lengths]


def _by_points(
    whole: SeriesSource, lengths: np.ndarray, points: tuple[int, ...], valid: float, test: float
) -> list[np.ndarray]:
    train, *sizes = points
    later = [np.full_like(lengths, size) if size else (lengths * share + 1e-6).astype(int)
             for size, share in zip(sizes, (valid, test), strict=True)]  # fmt: skip
    first = np.full_like(lengths, train) if train else lengths - later[0] - later[1]
    bounds = [first, first + later[0], first + later[0] + later[1]]
    if (short := (bounds[-1] > lengths) | (first < 1)).any():
        one = whole.series[short.argmax()]
        asked = " + ".join(f"{column[short.argmax()]:,}" for column in (first.clip(1), *later) if column.any())
        raise UserError(
            f"{whole.name}: {short.sum():,} of {len(lengths):,} series too short to be cut so, the first"
            f"{f' {one.name!r}' if one.name else ''} with {one.ends:,} points where {asked} are wanted; ask for fewer "
            "(data.*_points), or leave short series out"
        )
    return bounds


def _same_clock(before: SeriesSource, after: SeriesSource) -> Clock:
    clock = before.clock or after.clock
    kinds = {one.times.dtype.kind == "M" for source in (before, after) for one in source.series}
    if len(kinds) > 1:
        raise UserError(f"{after.name}: dates and numbers do not go together; {before.name} has the other")
    if (after.clock and clock and not after.clock.same(clock)) or before.dated != after.dated:
        raise UserError(f"{after.name}: a clock of {after.clock}, where {before.name} has one of {before.clock}")
    return clock or LINES
