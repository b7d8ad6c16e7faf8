"""Columns of a table, by header name or, without a header, by number; read row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.data.files import read_lines, suffix
from seqloom.data.role_names import flag
from seqloom.data.rows import (
    READERS,
    Refuse,
    Rows,
    find_delimiter,
    read_fields,
    read_tabbed,
    read_tsv,
    read_valid,
    text_of,
)

TABLES = {".csv", ".tsv"}  # may have no header
NO_HEADER = "; if the file has no header, give column numbers, such as 1 and 2"

Cells = Iterator[tuple[int, list[str]]]  # (line, the cells of the requested columns)


def find_columns(
    path: Path,
    columns: list[str],
    optional: str | None = None,
    loose: Collection[str] = (),
    roles: Sequence[str] = (),
) -> Callable[[], Cells] | None:
    """A reader of these columns of a CSV, TSV or JSONL file, plus an optional one where present; None: another format.

    Columns given as numbers, counted from 1, are those of a CSV or TSV (or other tab-separated text) without a header;
    tab-separated text of another kind has one if its first line has these names. A `loose` column may also hold
    numbers, or lists of texts and numbers, which become one item per line. `roles`: those of the columns, for the
    error if one is not there.
    """
    kind = suffix(path)
    named = dict(zip(columns, roles, strict=False))
    if (kind in TABLES or kind not in READERS) and (numbers := _numbers(columns)):
        last = int(optional) if optional and optional.isdecimal() else None
        return lambda: _numbered(path, numbers, last, named)
    if kind in READERS:
        return lambda: _named(path, READERS[kind], columns, optional, loose, named)
    if set(columns) <= set(_first_fields(path)):
        return lambda: _named(path, read_tsv, columns, optional, loose, named)
    return None


def whole_rows(path: Path, columns: list[str], refuse: Refuse | None = None) -> Rows | None:
    """All columns of each row of the file, as `find_columns` reads it; without a header, under their numbers. `refuse`:
    is told about rows that are not valid, which are left out."""
    kind = suffix(path)
    if (kind in TABLES or kind not in READERS) and _numbers(columns):
        return ((line, {str(n): cell for n, cell in enumerate(fields, 1)}) for line, fields in _lines(path))
    if kind in READERS:
        return READERS[kind](path) if refuse is None else read_valid(path, refuse)
    return read_tsv(path) if set(columns) <= set(_first_fields(path)) else None


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


def _first_fields(path: Path) -> list[str]:
    """The cells of the first line, if tabs separate them."""
    line = next(read_lines(path), "").rstrip("\r\n")
    return line.split("\t") if "\t" in line else []


def _named(
    path: Path,
    read: Callable[[Path], Rows],
    columns: list[str],
    optional: str | None,
    loose: Collection[str],
    roles: Mapping[str, str],
) -> Cells:
    way_out = NO_HEADER if suffix(path) in TABLES else ""
    for number, row in read(path):
        row |= {column: as_text(row[column]) for column in loose if column in row}
        selected = [*columns, optional] if optional and isinstance(row.get(optional), str) else columns
        place = f"{path}:{number}"
        yield number, [text_of(row, column, place, way_out, roles.get(column)) for column in selected]


def as_text(value: Any) -> Any:
    """A number as text, a list of texts and numbers as lines; anything else unchanged."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    parts = [as_text(part) for part in value] if isinstance(value, list) else []
    return "\n".join(parts) if isinstance(value, list) and all(isinstance(part, str) for part in parts) else value


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    return read_fields(path, find_delimiter(path)) if suffix(path) == ".csv" else read_tabbed(path)


def _numbered(path: Path, numbers: list[int], optional: int | None, roles: Mapping[str, str]) -> Cells:
    last = max(numbers)
    role = roles.get(str(last))
    way_out = f"; say which it is here: {flag(role, 'NUMBER')}" if role else ""
    for number, fields in _lines(path):
        if len(fields) < last:
            columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            separators = "commas" if suffix(path) == ".csv" else "tabs"
            raise UserError(
                f"{path}:{number}: no column {last}; this line has {columns}, separated by {separators}{way_out}"
            )
        selected = [*numbers, optional] if optional and optional <= len(fields) else numbers
        yield number, [fields[n - 1] for n in selected]
