"""Columns of a table, by their names in the header or by their numbers where there is none; row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.data.files import suffix
from seqloom.data.rows import READERS, read_fields, read_tabbed, text_of

TABLES = {".csv", ".tsv"}  # may come without a header
NO_HEADER = "; if the first line is no header, give the columns as numbers, like 1 and 2"

Cells = Iterator[tuple[int, list[str]]]  # (line, what stands in the columns that were asked for)


def find_columns(
    path: Path, columns: list[str], perhaps: str | None = None, loose: Collection[str] = ()
) -> Callable[[], Cells] | None:
    """How to read these columns of a CSV, TSV or JSONL file, and one more where it is there; None: no such file.

    Columns given as numbers, counted from 1, are those of a CSV or TSV (or any other text with tabs) without a header.
    What stands in a `loose` column need not be text: a number, or a list of texts and numbers, each on a line.
    """
    kind = suffix(path)
    if (kind in TABLES or kind not in READERS) and (numbers := _numbers(columns)):
        return lambda: _numbered(path, numbers, int(perhaps) if perhaps and perhaps.isdecimal() else None)
    if kind in READERS:
        return lambda: _named(path, columns, perhaps, loose)
    return None


def clean(text: str) -> str:
    """Without white space at its ends, and with line ends of one kind."""
    text = text.strip()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _numbers(columns: list[str]) -> list[int]:
    """The columns as numbers, when they are given so."""
    given = [column for column in columns if column.isdecimal()]
    if given and len(given) < len(columns):
        raise UserError(f"columns {' and '.join(columns)}: two names (of the header) or two numbers are wanted")
    if any(int(column) == 0 for column in given):
        raise UserError("column 0: columns are counted from 1")
    return [int(column) for column in given]


def _named(path: Path, columns: list[str], perhaps: str | None, loose: Collection[str]) -> Cells:
    kind = suffix(path)
    way_out = NO_HEADER if kind in TABLES else ""
    for number, row in READERS[kind](path):
        row |= {column: as_text(row[column]) for column in loose if column in row}
        wanted = [*columns, perhaps] if perhaps and isinstance(row.get(perhaps), str) else columns
        yield number, [text_of(row, column, f"{path}:{number}", way_out) for column in wanted]


def as_text(value: Any) -> Any:
    """A number as it is written, a list of texts and numbers one on a line; anything else as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    parts = [as_text(part) for part in value] if isinstance(value, list) else []
    return "\n".join(parts) if isinstance(value, list) and all(isinstance(part, str) for part in parts) else value


def _numbered(path: Path, numbers: list[int], perhaps: int | None) -> Cells:
    last = max(numbers)
    for number, fields in read_fields(path) if suffix(path) == ".csv" else read_tabbed(path):
        if len(fields) < last:
            there = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            separated = "commas" if suffix(path) == ".csv" else "tabs"
            raise UserError(f"{path}:{number}: no column {last}; this line has {there}, separated by {separated}")
        wanted = [*numbers, perhaps] if perhaps and perhaps <= len(fields) else numbers
        yield number, [fields[n - 1] for n in wanted]
