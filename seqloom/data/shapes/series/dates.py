"""Dates that are not ISO 8601: other orders of day, month and year, split over columns, without separators, AM and PM.

The order is decided by the whole column: one value that is valid only in one order proves it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from seqloom.core.quoting import quoted
from seqloom.data.shapes.series.times import OffClock, parse_times

Order = Literal["iso", "year", "day", "month"]  # ISO 8601, or what comes first

_TIME = (
    r"(?:[\sT,]+(?P<hour>\d{1,2})(?:[:时点](?P<minute>\d{1,2})?)?(?:[:分](?P<second>\d{1,2})?)?(?:\.0+)?秒?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?$"
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})[-/.年]\s*(?P<a>\d{1,2})(?:月$|月?[-/.]?\s*(?P<b>\d{1,2})日?|)" + _TIME)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<year>\d{4})" + _TIME)
PARTS = (
    ("year", "yr", "年", "年份"), ("month", "mon", "月", "月份"), ("day", "日", "dayofmonth"),
    ("hour", "hr", "时", "小时"), ("minute", "min", "分", "分钟"),
)  # fmt: skip


class Ambiguous(ValueError):
    """A date that may be read in two ways, and no other proves one; the message gives both."""


def find_order(cells: Sequence[Any], dayfirst: bool | None = None) -> Order | None:
    """The order of the dates in a whole column; None: some are no dates, or no order suits all."""
    with suppress(OffClock):
        parse_times(cells)
        return "iso"
    possible: set[Order] = {"year", "day", "month"}
    example = ""
    for cell in cells:
        text = str(cell).strip()
        if found := _YEAR_LAST.match(text):
            first, second = int(found["a"]), int(found["b"])
            possible -= {"year"} | ({"day"} if second > 12 else set()) | ({"month"} if first > 12 else set())
            example = example or text
        elif not _YEAR_FIRST.match(text) and not _is_iso(cell):
            return None
        else:
            possible &= {"year"}
    if len(possible) < 2:
        return next(iter(possible), None)
    if dayfirst is None:
        raise Ambiguous(f"{quoted(example)} may begin with the day or the month, and no other date shows which")
    return "day" if dayfirst else "month"


def parse_ordered(cells: Sequence[Any], order: Order) -> np.ndarray:
    """Times to the second; raises OffClock with the first row that is none."""
    if order == "iso":
        return parse_times(cells, "date")[0]
    return np.array([_ordered(cell, row, order) for row, cell in enumerate(cells)], dtype="datetime64[s]")


def joined(columns: Sequence[Sequence[Any]]) -> np.ndarray:
    """Times from a column each for the year, the month and, as far as given, the day, the hour and the minute."""
    rows = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        try:
            year, month, *rest = (int(float(cell)) for cell in cells)
            day, hour, minute = (*rest, *(1, 0, 0)[len(rest) :])
            rows.append(_made(year, month, day, hour, minute, 0))
        except (ValueError, TypeError, OverflowError):
            raise OffClock(row, f"{', '.join(str(cell) for cell in cells)} is not a time") from None
    return np.array(rows, dtype="datetime64[s]")


def split_columns(there: Sequence[str]) -> list[str]:
    """The columns over which times are split: at least year and month, and no part may lack before another."""
    lower = {name.strip().lower(): name for name in reversed(there)}
    found = [next((lower[name] for name in names if name in lower), None) for names in PARTS]
    given = [name for name in found[: found.index(None) if None in found else len(found)] if name]
    return given if len(given) >= 2 else []


def without_separators(numbers: np.ndarray, dated: bool) -> np.ndarray | None:
    """Numbers like 20210104 or, in a column with the name of a date or across a turn of the year, 202101 as dates; None
    if any is no date."""
    if numbers.dtype.kind != "i" or not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if low >= 1800_01_01 and high <= 2200_12_31:
        years, months, days = numbers // 10_000, numbers // 100 % 100, numbers % 100
    elif low >= 1800_01 and high <= 2200_12 and (dated or low // 100 < high // 100):
        years, months, days = numbers // 100, numbers % 100, np.ones_like(numbers)
    else:
        return None
    if months.min() < 1 or months.max() > 12 or days.min() < 1:
        return None
    month = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    found = month.astype("datetime64[D]") + (days - 1)
    return found.astype("datetime64[s]") if (found.astype("datetime64[M]") == month).all() else None


def _is_iso(cell: Any) -> bool:
    try:
        return parse_times([cell], "date") is not None
    except OffClock:
        return False


def _ordered(cell: Any, row: int, order: Order) -> np.datetime64:
    text = str(cell).strip()
    found = (_YEAR_FIRST if order == "year" else _YEAR_LAST).match(text)
    try:
        if not found:
            return np.datetime64(parse_times([cell], "date")[0][0])
        month, day = int(found["a"]), int(found["b"] or 1)
        if order == "day":
            month, day = day, month
        hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
        if half := found["half"]:
            if not 1 <= hour <= 12:
                raise ValueError
            hour = hour % 12 + (12 if half[0] in "pP" else 0)
        return _made(int(found["year"]), month, day, hour, minute, second)
    except (ValueError, OffClock):
        raise OffClock(row, f"{quoted(text)} is not a date like those before it") from None


def _made(year: int, month: int, day: int, hour: int, minute: int, second: int) -> np.datetime64:
    if not 1 <= year <= 9999:
        raise ValueError(f"{year} is not a year")
    return np.datetime64(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}", "s")
