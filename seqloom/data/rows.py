"""Rows of JSONL, CSV and TSV files, one at a time, each with the line it starts on.

CSV files may also be separated by semicolons or tabs: found from the first lines.
"""

from __future__ import annotations

import csv
import difflib
import json
import shlex
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.files import declared, read_lines, suffix
from seqloom.data.role_names import flag

LONGEST_FIELD = 1 << 24  # characters; an unclosed quote would swallow the rest of the file

_FIRST = 50  # lines that the delimiter is found from
_SEPARATORS = {",": "commas", ";": "semicolons", "|": "vertical bars"}
_LONGEST_NAME = 60  # characters of a column name

Rows = Iterator[tuple[int, Json]]
Fields = Iterator[tuple[int, list[str]]]
Refuse = Callable[[UserError], None]  # what to do about a row that is not valid; if it returns, the row is left out


def _stop(error: UserError) -> None:
    raise error from None


def read_jsonl(path: Path, refuse: Refuse = _stop) -> Rows:
    for number, line in enumerate(read_lines(path), 1):
        if line.isspace():
            continue
        try:
            row = _object(line, f"{path}:{number}")
        except UserError as error:
            refuse(error)
            continue
        yield number, row


def _object(line: str, place: str) -> Json:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{place}: not valid JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise UserError(f"{place}: JSON nested too deeply; give one flat object per line") from None
    except ValueError as error:
        raise UserError(f"{place}: not valid JSON: {error}") from None
    if not isinstance(row, dict):
        raise UserError(f'{place}: expected one JSON object per line, like {{"text": "..."}}')
    return row


def read_csv(path: Path, refuse: Refuse = _stop) -> Rows:
    return _under_header(path, read_fields(path, find_delimiter(path), refuse), refuse)


def find_delimiter(path: Path) -> str:
    """A comma, unless the first lines have equally many cells only with semicolons or tabs."""
    lines = _first_lines(path)
    if len(lines) < 2 or len(widths := _widths(lines, ",")) == 1 < max(widths):
        return ","  # also for a single line, which shows nothing
    if found := next((delimiter for delimiter in (";", "\t") if _separates(delimiter, lines)), None):
        return found
    if _separates("|", lines):
        way_out = f"tr '|' '\\t' < {shlex.quote(str(path))} > {shlex.quote(path.stem)}.tsv"
        raise UserError(f"{path}:1: vertical bars separate its cells; use commas, semicolons or tabs: {way_out}")
    return ","


def check_tabs(path: Path) -> None:
    """Refuse a .tsv file whose cells are separated by something else."""
    lines = _first_lines(path)
    if len(lines) < 2 or any("\t" in line for line in lines):
        return
    if found := next((name for delimiter, name in _SEPARATORS.items() if _separates(delimiter, lines)), None):
        way_out = "use tabs" if found == "vertical bars" else f"rename it to {path.stem}.csv"
        raise UserError(f"{path}:1: {found} separate its cells, not tabs; {way_out}")


def _first_lines(path: Path) -> list[str]:
    return [line for line in islice(read_lines(path), _FIRST) if not line.isspace()]


def _separates(delimiter: str, lines: list[str]) -> bool:
    """Whether all lines have equally many cells, under one that may be a header: short and distinct names, or
    numbers."""
    widths = _widths(lines, delimiter)
    header = [name.strip() for name in next(csv.reader(lines, delimiter=delimiter), [])] if widths else []
    named = len(set(header)) == len(header) or all(set(name) <= set("0123456789.,-") for name in header)
    return len(widths) == 1 and len(header) > 1 and named and max(map(len, header)) <= _LONGEST_NAME


def _widths(lines: list[str], delimiter: str) -> set[int]:
    """The numbers of cells; none if a quote does not suit this delimiter. A quote may end after the first lines."""
    found, reader = set(), csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        found = {len(fields) for fields in reader if fields}
    except csv.Error as error:
        return _widths(lines[:-1], delimiter) if "end of data" in str(error) and len(lines) > 1 else set()
    return found


def read_tsv(path: Path, refuse: Refuse = _stop) -> Rows:
    """Quotes group cells as in CSV, unless rows then differ in length: in that case they are ordinary characters."""
    check_tabs(path)
    known = path.stat()
    quoted = _reads_as_quoted(path, known.st_size, known.st_mtime_ns, declared(path))
    return _under_header(path, read_fields(path, "\t") if quoted else read_tabbed(path), refuse)


def _under_header(path: Path, rows: Fields, refuse: Refuse = _stop) -> Rows:
    header: list[str] | None = None
    for number, fields in rows:
        if header is None:
            header = fields
            continue
        if len(fields) != len(header):
            refuse(UserError(f"{path}:{number}: {len(fields)} fields, but the header has {len(header)}"))
            continue
        yield number, dict(zip(header, fields, strict=True))


def read_fields(path: Path, delimiter: str = ",", refuse: Refuse = _stop) -> Fields:
    """The fields of each line of a CSV file, including the header; empty lines are skipped."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(read_lines(path), delimiter=delimiter, strict=True)
    number = 1
    try:
        for fields in reader:
            if fields:
                yield number, fields
            number = reader.line_num + 1
    except csv.Error as error:  # nothing after it can be told apart
        refuse(UserError(f"{path}:{number}: not valid CSV: {_explained(str(error))}"))


def read_tabbed(path: Path) -> Fields:
    """Lines split at tabs, quotes being ordinary characters; empty lines are skipped."""
    for number, line in enumerate(read_lines(path), 1):
        if text := line.rstrip("\r\n"):
            yield number, text.split("\t")


@lru_cache(maxsize=64)
def _reads_as_quoted(path: Path, size: int, changed: int, encoding: object) -> bool:
    """Whether every row has as many cells as the header; cached until the file's size, time or encoding changes."""
    try:
        return len({len(fields) for _, fields in read_fields(path, "\t")}) < 2
    except UserError:
        return False


READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
}


def read_valid(path: Path, refuse: Refuse) -> Rows:
    """The rows of a file of any of these kinds that are valid; `refuse` is told about each of the others."""
    forgiving = {".jsonl": read_jsonl, ".ndjson": read_jsonl, ".csv": read_csv, ".tsv": read_tsv}
    kind = suffix(path)
    return forgiving[kind](path, refuse) if kind in forgiving else READERS[kind](path)


def text_of(row: Json, column: str, place: str, way_out: str = "", role: str | None = None) -> str:
    """The content of a column, checked to be text; `way_out`: hint if no column has this or a similar name; `role`:
    what it is to the task."""
    if column not in row:
        near = difflib.get_close_matches(column, row, n=1, cutoff=0.6)
        which = flag(role, near[0] if near else "NAME") if role else ""
        hint = f"; did you mean {near[0]!r}?" if near else way_out
        hint += f"{' ' if near else '; say which: '}{which}" if which else ""
        names = ", ".join(_short(name) for name in row) or "none"
        raise UserError(f"{place}: no column {column!r}; available: {names}{hint}")
    text = row[column]
    if not isinstance(text, str):
        raise UserError(f"{place}: column {column!r} is {_named(text)}, not text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"\\u{ord(text[error.start]):04x}"
        raise UserError(f"{place}: column {column!r} has a lone surrogate ({code}), half a character") from None
    return text


def _short(name: str) -> str:
    """A column name, shortened to one line: without a header it may be any text."""
    name = " ".join(name.split())
    return name if len(name) <= 40 else name[:39] + "…"


def _explained(message: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is opened here and never closed"
    if "new-line character" in message:
        return "a carriage return (\\r) in a cell without quotes; remove it, or put the cell in quotes"
    if "field limit" in message:
        return "a field of more than 16 million characters, most likely a quote that is never closed"
    return message


def _named(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names[type(value)]
