"""Numeric time series: one or many, univariate or multivariate; missing values stay missing.

Rows of a series increase in time. A step absent from the file becomes a row of missing values, so that row n is n steps
after the first. What follows the last value of any target is the future: only its known covariates are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, some
from seqloom.data.role_names import flag
from seqloom.data.shapes.series.calendar import calendar_of
from seqloom.data.shapes.series.clock import Clock, infer_clock
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.roles import read_table
from seqloom.data.shapes.series.seasons import Season
from seqloom.data.shapes.series.table import Table, listed
from seqloom.data.shapes.series.times import OffClock

LINES = Clock("number")  # if lines are counted
TAKEN = ("series", "step", "time")  # reserved: columns of a table of forecasts


@dataclass(frozen=True)
class Series:
    """`ends` points, and rows after them of which only the known covariates matter."""

    name: str
    times: np.ndarray  # (rows,) seconds, or numbers
    values: np.ndarray  # (rows, columns) float64
    ends: int

    @property
    def shown(self) -> str:
        return f"series {quoted(self.name)}" if self.name else "the series"


@dataclass(frozen=True)
class Facts:
    """What was found while reading."""

    rows: int = 0  # in the file
    missing: dict[str, int] = field(default_factory=dict)  # missing cells of each column up to the last value
    gaps: int = 0  # places where the clock jumps
    filled: int = 0  # rows inserted there
    ahead: int = 0  # rows after the last value
    empty: int = 0  # series without any value, left out
    left_out: tuple[str, ...] = ()  # non-numeric columns
    unused: int = 0  # points after the last split
    apart: int = 0  # series of a separate file that do not continue the earlier ones


@dataclass(frozen=True)
class SeriesSource:
    """A split: the points of each series from `begins` to `ends`; those before are history."""

    name: str
    columns: list[str]
    targets: list[str]
    past: list[str]
    known: list[str]
    clock: Clock | None  # None if no series has two points
    dated: bool  # times are those of the file; otherwise lines are counted
    series: list[Series]
    begins: list[int]
    ends: list[int]
    facts: Facts
    calendar: list[str]
    scale: str
    given: tuple[Season, ...] | None = None  # seasons, the main one first; None: not looked for yet
    texts: dict[str, list[str]] = field(default_factory=dict)  # columns of texts, coded: the text of each code
    levels: dict[str, list[str]] = field(default_factory=dict)  # columns of texts that became columns of 0 and 1
    named: bool = False  # the targets were named, rather than all columns of numbers

    @property
    def seasons(self) -> list[int]:
        """Points of each season, the main one first."""
        return [season.points for season in self.given or ()]

    @property
    def season(self) -> int:
        """Points of the main season; 1: none."""
        return self.seasons[0] if self.seasons else 1

    @property
    def count(self) -> int:
        return len(self.series)

    @property
    def points(self) -> int:
        return sum(self.ends) - sum(self.begins)

    @property
    def bytes(self) -> int:
        return 8 * len(self.columns) * self.points

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.columns} {self.clock} {self.begins} {self.ends}".encode())
        for one, end in zip(self.series, self.ends, strict=True):
            digest.update(one.name.encode() + one.times[:end].tobytes() + one.values[:end].tobytes())
        return digest.hexdigest()

    def places(self, names: Sequence[str]) -> list[int]:
        """The indices of these columns; raises if one is absent."""
        if lacking := [name for name in names if name not in self.columns]:
            raise UserError(f"{self.name}: no column {quoted(lacking[0])}; available: {some(self.columns)}")
        return [self.columns.index(name) for name in names]

    def points_of(self, names: Sequence[str]) -> np.ndarray:
        """The values of these columns at all points of this split, series after series: (points, names)."""
        places = self.places(names)
        parts = (one.values[begin:end] for one, begin, end in zip(self.series, self.begins, self.ends, strict=True))
        return np.concatenate([part[:, places] for part in parts])

    def constant(self) -> list[str]:
        """Series whose targets never change in this split."""
        places = self.places(self.targets)
        parts = zip(self.series, self.begins, self.ends, strict=True)
        return [one.name for one, begin, end in parts if _is_constant(one.values[begin:end, places])]

    def part(self, name: str, begins: Sequence[int], ends: Sequence[int]) -> SeriesSource:
        """Another range of each series; those without a point in it are left out."""
        kept = [n for n, (begin, end) in enumerate(zip(begins, ends, strict=True)) if end > begin]
        return replace(
            self,
            name=f"{self.name} ({name})",
            series=[self.series[n] for n in kept],
            begins=[begins[n] for n in kept],
            ends=[ends[n] for n in kept],
        )

    def each(self) -> Iterator[SeriesSource]:
        for one, begin, end in zip(self.series, self.begins, self.ends, strict=True):
            yield replace(self, series=[one], begins=[begin], ends=[end])


def open_series(spec: str, data: Options | None = None) -> SeriesSource:
    """CSV, TSV, JSONL, parquet or `sample:NAME`; also compressed. `data` gives the roles
    of columns."""
    data = data or Options.model_validate({"train": spec})
    table = read_table(spec, data)
    past, known = listed(data.past), listed(data.known)
    targets = listed(data.targets) or [name for name in table.columns if name not in (*past, *known)]
    if not targets:
        raise UserError(f"{spec}: no column is left to forecast; set {flag('targets')}")
    if taken := [name for name in targets if name in TAKEN]:
        raise UserError(
            f"{spec}: column {quoted(taken[0])} cannot be a target, as tables of forecasts have a column of that name; "
            f"rename it, set its role ({flag('series', taken[0])}), or set the targets ({flag('targets')})"
        )
    order = np.argsort(table.series, kind="stable")
    values, which, lines = table.values[order], table.series[order], table.lines[order]
    times, clock = _clocked(table, order, which, lines)
    found, facts = _cut(table, targets, times, values, which, clock)
    if not found:
        raise UserError(f"{spec}: contains no series; no target ({some(targets)}) has a value")
    seasons = None if data.seasons is None else tuple(Season(points) for points in data.seasons)
    calendar = calendar_of(data.calendar, clock.unit if clock else "day")
    ends = [one.ends for one in found]
    return SeriesSource(
        spec, table.columns, targets, past, known, clock, table.times is not None, found, [0] * len(found), ends, facts,
        calendar, data.scale, seasons, table.texts, named=bool(data.targets),
    )  # fmt: skip


def _clocked(table: Table, order: np.ndarray, which: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, Clock | None]:
    """The time of each row, series after series; refuses times that are out of order, duplicate or irregular."""
    if table.times is None:
        starts = np.searchsorted(which, which)  # the first row of each row's series
        return np.arange(len(which)) - starts, LINES
    times = table.times[order]
    _check_order(table, times, which, lines)
    try:
        clock = infer_clock(times, which)
    except OffClock as error:
        series = _shown(table, which[error.row])
        raise UserError(
            f"{table.name}:{lines[error.row]}: {series}: {error}; resample to one frequency, or give series of "
            "other frequencies a run of their own"
        ) from None
    if clock:
        _check_gaps(table, times, which, lines, clock)
    return times, clock


def _check_order(table: Table, times: np.ndarray, which: np.ndarray, lines: np.ndarray) -> None:
    inside, back = which[1:] == which[:-1], times[1:] <= times[:-1]
    if not (wrong := inside & back).any():
        return
    rows = np.flatnonzero(wrong)
    row = int(rows[lines[rows + 1].argmin()])  # first in the file
    series = _shown(table, which[row])
    place, here, before = f"{table.name}:{lines[row + 1]}", _at(times[row + 1]), _at(times[row])
    others = f" ({len(rows):,} such lines)" if len(rows) > 1 else ""
    if times[row] == times[row + 1]:
        way_out = "keep one" if len(table.names) > 1 else f"keep one, or say which names the series: {flag('series')}"
        raise UserError(f"{place}: duplicate time {here} in {series}, also on line {lines[row]}{others}; {way_out}")
    raise UserError(f"{place}: {here} comes after {before} in {series}{others}; sort the lines by time")


def _cut(
    table: Table, targets: list[str], times: np.ndarray, values: np.ndarray, which: np.ndarray, clock: Clock | None
) -> tuple[list[Series], Facts]:
    """Rows grouped into series; absent steps are filled with missing values."""
    places = [table.columns.index(name) for name in targets]
    bounds = np.searchsorted(which, np.arange(len(table.names) + 1))
    found, gaps, filled, ahead, empty = [], 0, 0, 0, 0
    missing = np.zeros(len(table.columns), np.int64)
    for n, name in enumerate(table.names):
        rows = slice(bounds[n], bounds[n + 1])
        when, numbers = times[rows], values[rows]
        there = np.flatnonzero(~np.isnan(numbers[:, places]).all(1))
        if not len(there):
            empty += 1
            continue
        missing += np.isnan(numbers[: there[-1] + 1]).sum(0)
        if clock and clock != LINES:
            before = len(when)
            when, numbers, jumps = fill(clock, when, numbers)
            gaps, filled = gaps + jumps, filled + len(when) - before
            there = np.flatnonzero(~np.isnan(numbers[:, places]).all(1))
        ends = int(there[-1]) + 1
        ahead += len(when) - ends
        found.append(Series(name, when, numbers, ends))
    cells = {name: int(count) for name, count in zip(table.columns, missing, strict=True) if count}
    return found, Facts(len(values), cells, gaps, filled, ahead, empty, tuple(table.left_out))


def _check_gaps(table: Table, times: np.ndarray, which: np.ndarray, lines: np.ndarray, clock: Clock) -> None:
    """Checked before memory is allocated."""
    lacking = np.where(which[1:] == which[:-1], np.round(clock.steps(times)) - 1, 0)
    if (rows := int(lacking.sum())) > len(times):
        raise UserError(
            f"{table.name}: filling the gaps at frequency {clock} would take {rows:,} rows, more than the "
            f"{len(times):,} there are; the longest gap ends on line {lines[lacking.argmax() + 1]}; resample, or count "
            "rows instead of time with --columns time=line"
        )


def fill(clock: Clock, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Times and values at every step of the clock, missing where absent; and the number of gaps."""
    steps = np.round(clock.steps(times)).astype(np.int64)
    if (steps == 1).all():
        return times, values, 0
    places = np.concatenate(([0], np.cumsum(steps)))
    size = int(places[-1]) + 1
    whole = np.full((size, values.shape[1]), np.nan)
    whole[places] = values
    when = np.concatenate((times[:1], clock.after(times[0], size - 1)))
    when[places] = times
    return when, whole, int((steps > 1).sum())


def _is_constant(values: np.ndarray) -> bool:
    missing = np.isnan(values)
    most, least = np.where(missing, -np.inf, values).max(0), np.where(missing, np.inf, values).min(0)
    return bool((most <= least).all())


def _shown(table: Table, series: int) -> str:
    return f"series {quoted(table.names[series])}" if table.names[series] else "the series"


def _at(time: np.datetime64 | float) -> str:
    """2016-07-01 12:00:00; at midnight, only the date."""
    return str(time).replace("T", " ").removesuffix(" 00:00:00")
