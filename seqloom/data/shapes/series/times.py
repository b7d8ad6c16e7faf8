"""Times: a column of dates (ISO 8601, to the second), months, years or plain numbers, as an array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from seqloom.core.quoting import quoted
from seqloom.data.numbers import LARGEST, as_number, is_number

_PLAIN = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d)?)?)?$")  # no zone, no fraction


class OffClock(ValueError):
    """A row (by its index) whose time is invalid; the message says why."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def parse_times(cells: Sequence[Any], kind: str | None = None) -> tuple[np.ndarray, str]:
    """Times to the second, or numbers; and which of the two: "date" or "number". `kind`: the required one.

    Raises OffClock with the first row that is neither.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return _to_the_second(cells), "date"
    if kind != "date":
        try:
            numbers = _as_numbers(cells)
        except (ValueError, TypeError):
            numbers = None
        if numbers is not None:
            if not (good := np.abs(numbers) < LARGEST).all():  # nor is NaN
                row = int(good.argmin())
                missing = cells[row] is None or cells[row] != cells[row]
                raise OffClock(row, "the time is missing" if missing else f"{quoted(cells[row])} is not a time")
            return numbers, "number"
        if kind == "number" or is_number(cells[0]):
            row = next((n for n, cell in enumerate(cells) if not is_number(cell)), 0)
            raise OffClock(row, f"{quoted(cells[row])} is not a number, unlike the times before it")
    return _dates(cells), "date"


def _as_numbers(cells: Sequence[Any]) -> np.ndarray:
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError:
        return np.array(list(map(as_number, cells)))


def as_whole(numbers: np.ndarray) -> np.ndarray:
    """As int64, if all are integers."""
    whole = bool((numbers == np.round(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
    return numbers.astype(np.int64) if whole else numbers


def _to_the_second(times: np.ndarray) -> np.ndarray:
    if np.isnat(times).any():
        raise OffClock(int(np.isnat(times).argmax()), "the time is missing")
    whole = times.astype("datetime64[s]")
    if (finer := whole != times).any():
        raise OffClock(
            int(finer.argmax()), f"{times[finer.argmax()]}: finer than a second; give times as plain numbers"
        )
    return whole


def _dates(cells: Sequence[Any]) -> np.ndarray:
    if all(isinstance(cell, str) and _PLAIN.match(cell) for cell in cells):
        try:
            return np.array(cells, dtype="datetime64[s]")
        except (ValueError, TypeError):
            pass  # parsed one by one, to find the invalid one
    return np.array([_date(cell, row) for row, cell in enumerate(cells)], dtype="datetime64[s]")


def _date(cell: Any, row: int) -> np.datetime64:
    if cell is None:
        raise OffClock(row, "the time is missing")
    text = cell.isoformat() if hasattr(cell, "isoformat") else str(cell).strip()
    try:
        if len(text) == 7 and text[4] == "-":
            return np.datetime64(text, "s")
        found = datetime.fromisoformat(text)
        found = found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        examples = "2016-07-01, 2016-07-01 12:00 or 2016-07"
        raise OffClock(row, f"{quoted(text)} is neither a date, like {examples}, nor a number") from None
    if found.microsecond:
        raise OffClock(row, f"{quoted(text)}: finer than a second; give times as plain numbers")
    return np.datetime64(found, "s")
