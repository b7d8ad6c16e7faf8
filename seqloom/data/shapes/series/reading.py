"""Numeric series on a clock: one or many, of one or many variables, with what is missing left missing.

Rows of a series rise in time. A step that the file leaves out becomes a row of missing values, so that row n is n steps
after the first. What follows the last value of any target is the future: only its known columns are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.shapes.series.calendar import calendar_of
from seqloom.data.shapes.series.clock import Clock, infer_clock
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.table import Table, listed, read_table
from seqloom.data.shapes.series.times import OffClock

LINES = Clock("number")  # where lines are counted
TAKEN = ("series", "step", "time")  # columns of a table of forecasts


@dataclass(frozen=True)
class Series:
    """`ends` points, and rows beyond them of which only the known columns say something."""

    name: str
    times: np.ndarray  # (rows,) seconds, or numbers
    values: np.ndarray  # (rows, columns) float64
    ends: int

    @property
    def shown(self) -> str:
        return f"series {self.name!r}" if self.name else "the series"


@dataclass(frozen=True)
class Facts:
    """What was found on reading."""

    rows: int = 0  # of the file
    missing: dict[str, int] = field(default_factory=dict)  # empty cells of each column up to the last value
    gaps: int = 0  # places where the clock jumps
    filled: int = 0  # rows that were put there
    ahead: int = 0  # rows after the last value
    empty: int = 0  # series without any value, left out
    left_out: tuple[str, ...] = ()  # columns without numbers
    unused: int = 0  # points after the last part
    apart: int = 0  # series of a file of their own that do not go on from what stands before


@dataclass(frozen=True)
class SeriesSource:
    """A part: of each series the points from `begins` to `ends`; what stands before them is history."""

    name: str
    columns: list[str]
    targets: list[str]
    past: list[str]
    known: list[str]
    clock: Clock | None  # None: no series has two points
    dated: bool  # times are those of the file; else lines are counted
    series: list[Series]
    begins: list[int]
    ends: list[int]
    facts: Facts
    calendar: list[str]
    scale: str
    season: int  # points; 1: none

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
        """Of these columns; one that is not there is named."""
        if lacking := [name for name in names if name not in self.columns]:
            raise UserError(f"{self.name}: no column {lacking[0]!r}; there are: {', '.join(self.columns)}")
        return [self.columns.index(name) for name in names]

    def points_of(self, names: Sequence[str]) -> np.ndarray:
        """What all series of this part have in these columns, one under the other: (points, names)."""
        places = self.places(names)
        parts = (one.values[begin:end] for one, begin, end in zip(self.series, self.begins, self.ends, strict=True))
        return np.concatenate([part[:, places] for part in parts])

    def constant(self) -> list[str]:
        """Series whose targets never change in this part."""
        places = self.places(self.targets)
        parts = zip(self.series, self.begins, self.ends, strict=True)
        return [one.name for one, begin, end in parts if _is_constant(one.values[begin:end, places])]

    def part(self, name: str, begins: Sequence[int], ends: Sequence[int]) -> SeriesSource:
        """Another stretch of each series; those without a point in it are left out."""
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
    """CSV, TSV, JSONL, parquet (`data.layout`: long or wide) or `sample:NAME`; also compressed. `data` says which
    column is what."""
    data = data or Options.model_validate({"train": spec})
    table = read_table(spec, data)
    past, known = listed(data.past), listed(data.known)
    targets = listed(data.targets) or [name for name in table.columns if name not in (*past, *known)]
    if not targets:
        raise UserError(f"{spec}: no column is left to forecast; -o data.targets=NAME")
    if taken := [name for name in targets if name in TAKEN]:
        raise UserError(
            f"{spec}: column {taken[0]!r} would be forecast, but a table of forecasts has a column of that name; "
            f"rename it, or say what it is: -o data.series={taken[0]}, or which columns are: -o data.targets=NAME"
        )
    order = np.argsort(table.series, kind="stable")
    values, which, lines = table.values[order], table.series[order], table.lines[order]
    times, clock = _clocked(table, order, which, lines)
    found, facts = _cut(table, targets, times, values, which, clock)
    if not found:
        raise UserError(f"{spec}: no series in it; no target ({', '.join(targets)}) has a value")
    season = data.season or (clock.season if clock else 1)
    calendar = calendar_of(data.calendar, clock.unit if clock else "day")
    ends = [one.ends for one in found]
    return SeriesSource(
        spec, table.columns, targets, past, known, clock, table.times is not None, found, [0] * len(found), ends, facts,
        calendar, data.scale, season,
    )  # fmt: skip


def _clocked(table: Table, order: np.ndarray, which: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, Clock | None]:
    """The time of each row, series after series; refuses what is out of order, there twice, or off the clock."""
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
            f"{table.name}:{lines[error.row]}: {series}: {error}; one regular clock is wanted: resample, or give "
            "series of other frequencies a run of their own"
        ) from None
    if clock:
        _check_gaps(table, times, which, lines, clock)
    return times, clock


def _check_order(table: Table, times: np.ndarray, which: np.ndarray, lines: np.ndarray) -> None:
    inside, back = which[1:] == which[:-1], times[1:] <= times[:-1]
    if not (wrong := inside & back).any():
        return
    rows = np.flatnonzero(wrong)
    row = int(rows[lines[rows + 1].argmin()])  # the first in the file
    series = _shown(table, which[row])
    place, here, before = f"{table.name}:{lines[row + 1]}", _at(times[row + 1]), _at(times[row])
    others = f" ({len(rows):,} such lines)" if len(rows) > 1 else ""
    if times[row] == times[row + 1]:
        way_out = (
            "keep one" if len(table.names) > 1 else "keep one, or name the column that tells series apart: data.series"
        )
        raise UserError(f"{place}: {here} is there twice in {series}, also on line {lines[row]}{others}; {way_out}")
    raise UserError(f"{place}: {here} comes after {before} in {series}{others}; sort the lines by time")


def _cut(
    table: Table, targets: list[str], times: np.ndarray, values: np.ndarray, which: np.ndarray, clock: Clock | None
) -> tuple[list[Series], Facts]:
    """Rows into series; steps that are left out are filled with missing values."""
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
    """Before memory is asked for."""
    lacking = np.where(which[1:] == which[:-1], np.round(clock.steps(times)) - 1, 0)
    if (wanted := int(lacking.sum())) > len(times):
        raise UserError(
            f"{table.name}: gaps in a clock of {clock} would take {wanted:,} rows to fill, more than the "
            f"{len(times):,} there are; the longest ends on line {lines[lacking.argmax() + 1]}. Resample, or -o "
            "data.time=line counts rows instead of time"
        )


def fill(clock: Clock, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Times and values on every step of the clock, missing where there was none; and in how many places."""
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
    return f"series {table.names[series]!r}" if table.names[series] else "the series"


def _at(time: np.datetime64 | float) -> str:
    """2016-07-01 12:00:00, without the parts at the end that say nothing."""
    return str(time).replace("T", " ").removesuffix(" 00:00:00")
