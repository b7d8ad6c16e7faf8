"""Rows of JSONL, CSV and TSV files, one at a time, each with the line it starts on.

CSV files may also be separated by semicolons or tabs: found from the first lines.
"""

from __future__ import annotations

import csv
import difflib
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, some
from seqloom.core.rows import Json
from seqloom.data.files import declared, read_lines, suffix
from seqloom.data.role_names import flag
from seqloom.data.strict_json import parse_json

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
            row = _object(line, path, number)
        except UserError as error:
            refuse(error)
            continue
        yield number, row


def _object(line: str, path: Path, number: int) -> Json:
    row = parse_json(line.rstrip(), path, number)
    if not isinstance(row, dict):
        raise UserError(f'{path}:{number}: expected one JSON object per line, like {{"text": "..."}}')
    return row


def read_csv(path: Path, refuse: Refuse = _stop) -> Rows:
    delimiter = find_delimiter(path)
    return _under_header(path, read_fields(path, delimiter, refuse), delimiter, refuse)


def find_delimiter(path: Path) -> str:
    """A comma, unless the first lines have equally many cells only with semicolons or tabs, or the header has several
    with these and one with commas."""
    lines = _first_lines(path)
    if len(lines) < 2 or len(widths := _widths(lines, ",")) == 1 < max(widths):
        return ","  # also for a single line, which shows nothing
    if found := next((delimiter for delimiter in (";", "\t") if _separates(delimiter, lines)), None):
        return found
    if _separates("|", lines):
        way_out = f"tr '|' '\\t' < {shlex.quote(str(path))} > {shlex.quote(path.stem)}.tsv"
        raise UserError(f"{path}:1: vertical bars separate its cells; use commas, semicolons or tabs: {way_out}")
    return next((mark for mark in (";", "\t") if mark in lines[0]), ",") if "," not in lines[0] else ","


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
    return _under_header(path, read_fields(path, "\t") if quoted else read_tabbed(path), "\t", refuse)


def _under_header(path: Path, rows: Fields, delimiter: str = "", refuse: Refuse = _stop) -> Rows:
    header: list[str] | None = None
    for number, fields in rows:
        if header is None:
            header = fields
            check_header(path, number, header)
            continue
        if len(fields) != len(header):
            refuse(uneven(path, number, len(fields), len(header), delimiter))
            continue
        yield number, dict(zip(header, fields, strict=True))


def check_header(path: Path, line: int, header: list[str]) -> None:
    """Refuse a name that two columns have; columns without a name cannot be named, so several do no harm."""
    if twice := next((name for name, count in Counter(header).items() if count > 1 and name.strip()), None):
        way_out = "give each its own name, or, if this line is no header, give column numbers"
        raise UserError(f"{path}:{line}: two columns are named {quoted(twice)}; {way_out}")


def uneven(path: Path, line: int, count: int, width: int, delimiter: str) -> UserError:
    """A row with more or fewer cells than the header."""
    mark = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(delimiter, "its own mark")
    hint = f"a cell is missing, or its line is not separated by {mark}"
    if count > width:
        hint = f"it is read as separated by {mark}; put a cell that contains one in quotes"
    if width == 1:
        hint = "use commas, semicolons or tabs between columns in .csv, tabs in .tsv"
    cells = "1 field" if count == 1 else f"{count:,} fields"
    return UserError(f"{path}:{line}: {cells}, but the header has {width:,}; {hint}")


def read_fields(path: Path, delimiter: str = ",", refuse: Refuse = _stop) -> Fields:
    """The fields of each line of a CSV file, including the header; empty lines are skipped."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(read_lines(path), delimiter=delimiter, strict=True)
    number = 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
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
        hint = f"; did you mean {quoted(near[0])}?" if near else way_out
        hint += f"{' ' if near else '; say which: '}{which}" if which else ""
        raise UserError(f"{place}: no column {quoted(column)}; available: {some(row)}{hint}")
    text = row[column]
    if not isinstance(text, str):
        raise UserError(f"{place}: column {quoted(column)} is {named(text)}, not text")
    return text


def _explained(message: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is opened here and never closed"
    if "new-line character" in message:
        return "a carriage return (\\r) in a cell without quotes; remove it, or put the cell in quotes"
    if "field limit" in message:
        return "a field of more than 16 million characters, most likely a quote that is never closed"
    return message


def named(value: Any) -> str:
    """What kind of JSON value this is."""
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a text")
