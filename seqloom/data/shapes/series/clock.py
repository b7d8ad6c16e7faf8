"""The clock of a series: its frequency, the times that lie on it, and those that come next.

A step is a number of seconds, minutes, hours, days or weeks; or of calendar months or years, whose lengths differ; or,
if times are plain numbers, a plain number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.data.shapes.series.times import OffClock

SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
MONTHS = {"year": 12, "month": 1}
FINE = 12  # points that a minute or an hour must have to be a season
NEARLY = 1e-3  # share of a step, a tolerance for rounded numbers


@dataclass(frozen=True)
class Clock:
    unit: str  # second, minute, hour, day, week, month, year, number
    step: float = 1  # in that unit; an integer unless the unit is number
    month_end: bool = False  # months: each point is on the last day of its month

    def __str__(self) -> str:
        step = int(self.step) if self.step == int(self.step) else self.step
        if self.unit == "number":
            return f"number, step {step}"
        return self.unit if step == 1 else f"{step} {self.unit}s"

    @property
    def seasons(self) -> list[int]:
        """Points per season that the calendar suggests, ascending: minute, hour, day, week and year, as far as they
        have enough points; whether the data has them is for the data to say."""
        if self.unit in MONTHS:
            points = [12 / (MONTHS[self.unit] * self.step)]
        elif self.unit in SECONDS:
            size = SECONDS[self.unit] * self.step
            short = [SECONDS[unit] / size for unit in ("minute", "hour") if SECONDS[unit] / size >= FINE]
            year = 52 * 604_800 if self.unit == "week" else 365.25 * 86_400
            points = [*short, 86_400 / size, 604_800 / size, round(year / size)]
        else:
            points = []
        return [int(count) for count in points if count >= 2 and count == int(count)]

    def same(self, other: Clock) -> bool:
        """Whether the steps are equal; a short file does not show whether its points are at the ends of months."""
        return (self.unit, self.step) == (other.unit, other.step)

    def steps(self, times: np.ndarray) -> np.ndarray:
        """From each time to the next, in steps of this clock: integers where times lie on it."""
        if self.unit in MONTHS:
            return np.diff(_months(times)) / (MONTHS[self.unit] * self.step)
        if self.unit == "number":
            return np.diff(times) / self.step
        return np.diff(times).astype(np.int64) / (SECONDS[self.unit] * self.step)

    def after(self, time: Any, count: int) -> np.ndarray:
        """The next `count` times."""
        ahead = np.arange(1, count + 1)
        if self.unit == "number":
            return time + ahead * (int(self.step) if isinstance(time, np.integer) else self.step)
        if self.unit not in MONTHS:
            return time + ahead * np.timedelta64(int(SECONDS[self.unit] * self.step), "s")
        month = time.astype("datetime64[M]") + ahead * int(MONTHS[self.unit] * self.step)
        day, rest = time.astype("datetime64[D]"), time - time.astype("datetime64[D]")
        last = (month + 1).astype("datetime64[D]") - 1
        same = month.astype("datetime64[D]") + (day - day.astype("datetime64[M]").astype("datetime64[D]"))
        return (last if self.month_end else np.minimum(same, last)) + rest


def infer_clock(times: np.ndarray, series: np.ndarray) -> Clock | None:
    """The clock on which all rows lie, by their most common step; None if no series has two points.

    `times` increase within each series, whose rows are contiguous.
    """
    inside = series[1:] == series[:-1]
    if not inside.any():
        return None
    calendar, month_end = _is_monthly(times, inside) if times.dtype.kind == "M" else (False, False)
    base = Clock("month", month_end=month_end) if calendar else Clock("number" if times.dtype.kind != "M" else "second")
    apart = base.steps(times)[inside]
    if times.dtype.kind == "f":
        apart = np.round(apart / apart.min(), 4) * apart.min()
    lengths, which, counts = np.unique(apart, return_inverse=True, return_counts=True)
    step = lengths[counts.argmax()]
    clock = _named(base, step)
    rows = np.flatnonzero(inside) + 1
    if len(lengths) > 1:
        _check_each(series[rows], rows, which, lengths, step, base)
        parts = apart / step
        if (off := np.abs(parts - np.round(parts)) > NEARLY).any():
            row = int(rows[off.argmax()])
            found = _named(base, apart[off.argmax()])
            raise OffClock(row, f"its distance to the point before ({found}) is not a multiple of the step ({clock})")
    return clock


def _months(times: np.ndarray) -> np.ndarray:
    return times.astype("datetime64[M]").astype(np.int64)


def _is_monthly(times: np.ndarray, inside: np.ndarray) -> tuple[bool, bool]:
    """Whether all points are on the same day of their month, at the same time; and whether that day is the last."""
    days = times.astype("datetime64[D]")
    if np.diff(times)[inside].min().astype(np.int64) < 28 * 86_400 or len(np.unique(times - days)) > 1:
        return False, False
    of_month = days - times.astype("datetime64[M]").astype("datetime64[D]")
    if len(np.unique(of_month)) == 1:
        return True, False
    month_end = bool(((days + 1).astype("datetime64[M]") > times.astype("datetime64[M]")).all())
    return month_end, month_end


def _named(base: Clock, step: float) -> Clock:
    """A step of seconds, months or numbers, in the largest unit that divides it."""
    if base.unit == "number":
        return Clock("number", float(f"{step:.9g}"))  # differences of numbers like 0.1 are not exact
    units = MONTHS if base.unit == "month" else SECONDS
    unit = next(unit for unit, size in units.items() if step % size == 0)
    return Clock(unit, int(step) // units[unit], base.month_end)


def _check_each(
    series: np.ndarray, rows: np.ndarray, which: np.ndarray, lengths: np.ndarray, step: float, base: Clock
) -> None:
    """Refuse a series whose own most common step, seen at least twice, differs from that of all data."""
    pairs, first, counts = np.unique(series * len(lengths) + which, return_index=True, return_counts=True)
    order = np.lexsort((-counts, pairs // len(lengths)))
    owner = pairs[order] // len(lengths)
    most = order[np.concatenate(([True], owner[1:] != owner[:-1]))]  # the most common step of each series
    strange = (lengths[pairs[most] % len(lengths)] != step) & (counts[most] > 1)
    if strange.any():
        found = most[strange.argmax()]
        own = _named(base, lengths[pairs[found] % len(lengths)])
        raise OffClock(int(rows[first[found]]), f"its frequency is {own}, but that of most is {_named(base, step)}")
