"""Splitting series in time: first training, then validation, then test; never shuffled.

A split keeps the points before it as history. Splits may also come from separate files, each of which continues where
the previous one ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.role_names import flag
from seqloom.data.shapes.series.categories import expanded, levels_of, recoded
from seqloom.data.shapes.series.clock import NEARLY, Clock
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import LINES, Series, SeriesSource
from seqloom.data.shapes.series.seasons import Season, find_seasons
from seqloom.data.split import shares_of


def open_parts(whole: SeriesSource, data: Options, given: Mapping[str, SeriesSource]) -> dict[str, SeriesSource]:
    """Train, valid and test: those `given` as separate files, the others cut from the whole."""
    if "valid" in given and "test" not in given and (data.test_fraction or data.test_points):
        raise UserError(
            "data.valid is a separate file, and a test split cut from data.train would come before it; give data.test "
            "too, or neither"
        )
    given = _one_code(whole, given)
    parts = split_series(whole, data, apart=tuple(given))
    before = whole
    for name in ("valid", "test"):
        if name in given:
            parts[name] = join(before, given[name])
            before = _with(before, parts[name])
    levels = levels_of(parts["train"])
    return _with_seasons({name: expanded(part, levels) for name, part in parts.items()})


def _one_code(whole: SeriesSource, given: Mapping[str, SeriesSource]) -> dict[str, SeriesSource]:
    """Separate files with the codes of the first for their texts."""
    texts, found = whole.texts, {}
    for name, part in given.items():
        found[name] = recoded(part, texts)
        texts = found[name].texts
    return found


def seasons_of(train: SeriesSource) -> tuple[Season, ...]:
    """Found in the training set, unless given."""
    if train.given is not None:
        return train.given
    places = train.places(train.targets)
    parts = zip(train.series, train.begins, train.ends, strict=True)
    channels = [one.values[begin:end, place] for one, begin, end in parts for place in places]
    return tuple(find_seasons(channels, (train.clock or LINES).seasons))


def _with_seasons(parts: Mapping[str, SeriesSource]) -> dict[str, SeriesSource]:
    seasons = seasons_of(parts["train"])
    return {name: replace(part, given=seasons) for name, part in parts.items()}


def split_series(whole: SeriesSource, data: Options, apart: tuple[str, ...] = ()) -> dict[str, SeriesSource]:
    """By points per series, by share of each, or at the same time in all; `apart`: splits that have their own files."""
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
        bounds = _at_one_time(whole, lengths, valid, test)
    used = {"train": True, "valid": bool(valid or points[1]), "test": bool(test or points[2])}
    begins = np.zeros_like(lengths)
    parts = {}
    for (name, there), ends in zip(used.items(), bounds, strict=True):
        if there:
            parts[name] = whole.part(name, begins.tolist(), ends.tolist())
            if not parts[name].series:
                way_out = "add points, use a larger share, or give a separate file"
                raise UserError(f"{whole.name}: too few points ({whole.points:,}) for a {name} split; {way_out}")
        begins = ends
    unused = int((lengths - begins).sum())
    return {name: replace(part, facts=replace(part.facts, unused=unused)) for name, part in parts.items()}


def latest(train: SeriesSource, share: float) -> SeriesSource:
    """The last points of each series of a training set, as if nothing had been recorded before them."""
    first = [end - max(1, round(share * (end - begin))) for begin, end in zip(train.begins, train.ends, strict=True)]
    series = [
        replace(one, times=one.times[cut:], values=one.values[cut:], ends=one.ends - cut)
        for one, cut in zip(train.series, first, strict=True)
    ]
    ends = [end - cut for end, cut in zip(train.ends, first, strict=True)]
    return replace(train, name=f"{train.name}, latest {share:g}", series=series, begins=[0] * len(ends), ends=ends)


def join(before: SeriesSource, after: SeriesSource) -> SeriesSource:
    """A separate file with the earlier points as history; an overlap is refused.

    Without a time column, a file continues where the previous one ends. A series that begins after a gap of more steps
    than it has in both files gets no history.
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
    """All data so far: series that continue, and those absent from the later file."""
    on = {one.name for one in after.series}
    rest = [(one, end) for one, end in zip(before.series, before.ends, strict=True) if one.name not in on]
    series, ends = [*after.series, *(one for one, _ in rest)], [*after.ends, *(end for _, end in rest)]
    return replace(after, series=series, begins=[0] * len(series), ends=ends)


def _gap(old: Series, one: Series, clock: Clock, names: tuple[str, str]) -> int:
    """Missing steps between the last point of one file and the first of the next."""
    last, first = old.times[old.ends - 1], one.times[0]
    if first <= last:
        raise UserError(
            f"{names[1]}: {one.shown} begins at {first}, but {names[0]} ends at {last}; splits must not overlap: "
            "remove what is in both"
        )
    steps = float(clock.steps(np.array([last, first]))[0])
    if abs(steps - round(steps)) > NEARLY:
        raise UserError(f"{names[1]}: {one.shown} begins at {first}, which does not fit frequency {clock} after {last}")
    return round(steps) - 1


def _follow(old: Series, one: Series, gap: int, clock: Clock) -> Series:
    between = np.full((gap, one.values.shape[1]), np.nan)
    values = np.concatenate((old.values[: old.ends], between, one.values))
    times = np.concatenate((old.times[: old.ends], clock.after(old.times[old.ends - 1], gap + len(one.times))))
    return Series(one.name, times, values, old.ends + gap + one.ends)


def scale_of(train: SeriesSource, columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread of each column over all points of the training set; a constant column has a spread of 1."""
    values = train.points_of(columns)
    if lacking := [name for name, there in zip(columns, (~np.isnan(values)).any(0), strict=True) if not there]:
        raise UserError(f"{train.name}: column {quoted(lacking[0])} has no values in the training set; leave it out")
    if train.scale == "none" or not columns:
        return np.zeros(len(columns)), np.ones(len(columns))
    largest = np.nanmax(np.abs(values), axis=0)
    largest = np.where(largest > 0, largest, 1.0)
    values = values / largest  # avoids overflow and underflow of squares
    if train.scale == "robust":
        low, centre, high = np.nanpercentile(values, [25, 50, 75], axis=0)
        spread = (high - low) / 1.349  # the standard deviation of a normal distribution
        deviation = np.nanstd(values, axis=0)
        spread = np.where(spread > 1e-8 * np.abs(centre), spread, deviation)  # mostly, but not always, one value
    else:
        centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    centre, spread = centre * largest, np.where(spread > 1e-8 * np.abs(centre), spread * largest, 1.0)  # less: rounding
    if strange := [name for name, size in zip(columns, spread, strict=True) if not np.isfinite(size)]:
        raise UserError(f"{train.name}: the numbers in column {quoted(strange[0])} are too large; use another unit")
    return centre, spread


def clock_of(train: SeriesSource) -> Clock:
    """The clock of the training set; raises if no series has two points to tell it from."""
    if train.clock is None:
        which = f"none of its {train.count:,} series has" if train.count > 1 else "the series does not have"
        way_out = f"if a wrong column names the series, choose another: {flag('series')}"
        raise UserError(f"{train.name}: {which} two points; {way_out}")
    return train.clock


def changed_after(source: SeriesSource, moments: Mapping[str, int], seed: int = 0) -> SeriesSource:
    """The same series with other values from a given row on, by name; what is missing stays the same."""
    rng = np.random.default_rng(seed)
    series = []
    for one in source.series:
        values = one.values.copy()
        later = values[moments.get(one.name, len(values)) :]
        later *= -3.0
        later += rng.normal(100.0, 50.0, later.shape)
        series.append(replace(one, values=values))
    return replace(source, series=series)


def check_no_leak(whole: SeriesSource, data: Options, apart: tuple[str, ...] = ()) -> list[str]:
    """What changes in the split, the training points and the scale if all values after training are changed."""
    parts = split_series(whole, data, apart)
    moments = {one.name: end for one, end in zip(parts["train"].series, parts["train"].ends, strict=True)}
    moments = {one.name: moments.get(one.name, 0) for one in whole.series}
    others = split_series(changed_after(whole, moments), data, apart)
    return list(_changes(parts, others))


def _changes(parts: Mapping[str, SeriesSource], others: Mapping[str, SeriesSource]) -> Iterator[str]:
    for name, part in parts.items():
        if (part.begins, part.ends) != (others[name].begins, others[name].ends):
            yield f"the bounds of the {name} split"
    train, other = parts["train"], others["train"]
    if train.hash != other.hash:
        yield "the training points"
    columns = [*train.targets, *train.past, *train.known]
    if any((one != two).any() for one, two in zip(scale_of(train, columns), scale_of(other, columns), strict=True)):
        yield "the scale"
    if seasons_of(train) != seasons_of(other):
        yield "the seasons"


def _by_share(lengths: np.ndarray, valid: float, test: float) -> list[np.ndarray]:
    train = np.floor(lengths * (1 - valid - test) + 1e-6).astype(int)
    return [train, np.floor(lengths * (1 - test) + 1e-6).astype(int), lengths]


def _at_one_time(whole: SeriesSource, lengths: np.ndarray, valid: float, test: float) -> list[np.ndarray]:
    """At times that leave about these shares of all points after them."""
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
        needed = " + ".join(f"{column[short.argmax()]:,}" for column in (first.clip(1), *later) if column.any())
        raise UserError(
            f"{whole.name}: {short.sum():,} of {len(lengths):,} series are too short to split, the first"
            f"{f' {one.name!r}' if one.name else ''} with {one.ends:,} points, but {needed} are needed; ask for fewer "
            "(data.*_points), or remove short series"
        )
    return bounds


def _same_clock(before: SeriesSource, after: SeriesSource) -> Clock:
    clock = before.clock or after.clock
    kinds = {one.times.dtype.kind == "M" for source in (before, after) for one in source.series}
    if len(kinds) > 1:
        raise UserError(f"{after.name}: dates and plain numbers do not go together; {before.name} has the other")
    if (after.clock and clock and not after.clock.same(clock)) or before.dated != after.dated:
        raise UserError(f"{after.name}: frequency {after.clock}, but that of {before.name} is {before.clock}")
    return clock or LINES
