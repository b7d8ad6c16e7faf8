"""Columns of a table, by header name or, without a header, by number; read row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.data.files import suffix
from seqloom.data.rows import READERS, find_delimiter, read_fields, read_tabbed, text_of

TABLES = {".csv", ".tsv"}  # may have no header
NO_HEADER = "; if the file has no header, give column numbers, such as 1 and 2"

Cells = Iterator[tuple[int, list[str]]]  # (line, the cells of the requested columns)


def find_columns(
    path: Path, columns: list[str], optional: str | None = None, loose: Collection[str] = ()
) -> Callable[[], Cells] | None:
    """A reader of these columns of a CSV, TSV or JSONL file, plus an optional one where present; None: another format.

    Columns given as numbers, counted from 1, are those of a CSV or TSV (or other tab-separated text) without a header.
    A `loose` column may also hold numbers, or lists of texts and numbers, which become one item per line.
    """
    kind = suffix(path)
    if (kind in TABLES or kind not in READERS) and (numbers := _numbers(columns)):
        return lambda: _numbered(path, numbers, int(optional) if optional and optional.isdecimal() else None)
    if kind in READERS:
        return lambda: _named(path, columns, optional, loose)
    return None


def clean(text: str) -> str:
    """Stripped of surrounding white space, line endings normalised."""
    text = text.strip()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _numbers(columns: list[str]) -> list[int]:
    """The columns as numbers, if they were given as numbers."""
    given = [column for column in columns if column.isdecimal()]
    if given and len(given) < len(columns):
        raise UserError(f"columns {' and '.join(columns)}: give header names or column numbers, not both")
    if any(int(column) == 0 for column in given):
        raise UserError("column 0: columns are counted from 1")
    return [int(column) for column in given]


def _named(path: Path, columns: list[str], optional: str | None, loose: Collection[str]) -> Cells:
    kind = suffix(path)
    way_out = NO_HEADER if kind in TABLES else ""
    for number, row in READERS[kind](path):
        row |= {column: as_text(row[column]) for column in loose if column in row}
        selected = [*columns, optional] if optional and isinstance(row.get(optional), str) else columns
        yield number, [text_of(row, column, f"{path}:{number}", way_out) for column in selected]


def as_text(value: Any) -> Any:
    """A number as text, a list of texts and numbers as lines; anything else unchanged."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    parts = [as_text(part) for part in value] if isinstance(value, list) else []
    return "\n".join(parts) if isinstance(value, list) and all(isinstance(part, str) for part in parts) else value


def _numbered(path: Path, numbers: list[int], optional: int | None) -> Cells:
    last = max(numbers)
    for number, fields in read_fields(path, find_delimiter(path)) if suffix(path) == ".csv" else read_tabbed(path):
        if len(fields) < last:
            columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            separators = "commas" if suffix(path) == ".csv" else "tabs"
            raise UserError(f"{path}:{number}: no column {last}; this line has {columns}, separated by {separators}")
        selected = [*numbers, optional] if optional and optional <= len(fields) else numbers
        yield number, [fields[n - 1] for n in selected]
