"""A look at the beginning of a table (CSV, TSV, JSONL, tab-separated text), from which the roles of columns are found.

The first rows are read; `far` also takes some of the following ones, since a file may be sorted by a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.data.columns import TABLES
from seqloom.data.files import read_lines, suffix
from seqloom.data.header import is_header
from seqloom.data.rows import READERS, check_tabs, find_delimiter, read_fields, read_tabbed, read_valid

FIRST = 1000  # rows read
EVERY = 25  # after those, one in so many, when looking far
FAR = 64_000_000  # characters read at most, when looking far


@dataclass(frozen=True)
class Peek:
    """Some rows of a table; a cell is a text, in JSONL any value."""

    name: str  # what the user typed
    header: bool  # the columns have names; otherwise numbers, from 1
    names: list[str]
    rows: list[list[Any]]


def peek(spec: str, header: bool | None = None, far: bool = False, *, forgiving: bool = False) -> Peek | None:
    """None: no table, no rows, or not readable, which opening it reports. `header`: None if it is not known;
    `forgiving`: rows that are not valid are passed over."""
    path = Path(spec)
    try:
        if spec.startswith("sample:") or not path.is_file():
            return None
        kind = suffix(path)
        if kind in READERS and kind not in TABLES:
            objects = read_valid(path, lambda error: None) if forgiving else READERS[kind](path)
            return _of_objects(spec, [row for _, row in _some(objects, far)])
        if kind not in TABLES and not _has_tabs(path):
            return None
        rows = _some(_fields(path, kind, forgiving), far)
        return _of_fields(spec, [fields for _, fields in rows], header, kind == ".csv")
    except (UserError, OSError, ValueError):
        return None


def lacking(spec: str, names: Mapping[str, object]) -> set[str]:
    """The keys of those names, or numbers, of columns that a table does not have; none if it is no table."""
    found = {}
    for key, name in names.items():
        table = peek(spec, header=not str(name).isdecimal())
        found[key] = table is None or str(name) in table.names
    return {key for key, there in found.items() if not there}


def _some(rows: Iterator[tuple[int, Any]], far: bool) -> Iterator[tuple[int, Any]]:
    yield from islice(rows, FIRST)
    size = 0
    for n, row in enumerate(rows if far else ()):
        if n % EVERY == 0:
            yield row
            size += EVERY * len(str(row))
        if size > FAR:
            return


def _fields(path: Path, kind: str, forgiving: bool) -> Iterator[tuple[int, list[str]]]:
    """As the file will be read: quotes in a TSV file group cells, unless rows then differ in length."""
    if kind == ".csv" and forgiving:
        return read_fields(path, find_delimiter(path), lambda error: None)
    if kind == ".csv":
        return read_fields(path, find_delimiter(path))
    if kind == ".tsv":
        check_tabs(path)
    try:
        lengths = {len(fields) for _, fields in islice(read_fields(path, "\t"), FIRST)} if kind == ".tsv" else set()
    except UserError:
        lengths = set()
    return read_fields(path, "\t") if len(lengths) == 1 else read_tabbed(path)


def _has_tabs(path: Path) -> bool:
    """Whether a text is a table: every line with the same number of tabs."""
    tabs = {line.count("\t") for line in islice(read_lines(path), 100) if line.strip()}
    return len(tabs) == 1 and tabs != {0}


def _of_fields(spec: str, rows: list[list[str]], header: bool | None, usual: bool) -> Peek | None:
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    first = rows[0] if rows else []
    below = [row for row in rows[1:] if len(row) == width]
    if not width or (header is not False and len(first) != width and not below):
        return None
    if header is None:
        whole = len(first) == width
        header = whole and is_header(first, below, usual)
        if whole and not header and is_header(_told_apart(first), below, usual=False):
            return None  # a header with a name twice, which opening it reports
    if header:
        distinct = len(set(filter(str.strip, first))) == len(list(filter(str.strip, first)))
        return Peek(spec, True, first, below) if below and len(first) == width and distinct else None
    return Peek(spec, False, [str(n + 1) for n in range(width)], [row for row in rows if len(row) == width])


def _told_apart(names: list[str]) -> list[str]:
    first = {name: n for n, name in reversed([*enumerate(names)])}
    return [name if first[name] == n else f"{name}{n}" for n, name in enumerate(names)]


def _of_objects(spec: str, rows: list[dict[str, Any]]) -> Peek | None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Peek(spec, True, names, [[row.get(name) for name in names] for row in rows]) if names else None
