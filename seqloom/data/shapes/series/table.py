"""Tables of series as in the file, read in blocks of lines, every cell checked; nothing is sorted here.

long    CSV, TSV, JSONL, parquet: a line is one time step (of one series), with a time column
wide    CSV, TSV: a line is a whole series, its name first, then its values; empty cells at the end are ignored
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.files import check_file, suffix
from seqloom.data.rows import read_fields, read_jsonl
from seqloom.data.samples import find_sample
from seqloom.data.shapes.series.blocks import Block, csv_blocks, json_blocks, parquet_blocks
from seqloom.data.shapes.series.cells import is_missing, is_number, to_numbers
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.times import OffClock, as_whole, parse_times

WHEN = ("time", "date", "datetime", "timestamp", "ds", "month", "year", "week", "day")  # usual names of time columns
BY_LINE = "line"  # data.time if there is no time column
VALUE = "value"  # the column of a wide file


@dataclass
class Table:
    """Rows in file order."""

    name: str  # what the user typed
    columns: list[str]  # numeric ones
    values: np.ndarray  # (N, columns) float64; NaN: missing
    series: np.ndarray  # (N,) index of the series of each row
    names: list[str]  # of the series
    times: np.ndarray | None  # (N,) seconds or numbers; None: lines are evenly spaced
    lines: np.ndarray  # (N,) line number of each row
    left_out: list[str] = field(default_factory=list)  # non-numeric columns that have no role


def read_table(spec: str, data: Options) -> Table:
    if spec.startswith("sample:"):
        blocks = json_blocks(spec, enumerate(find_sample(spec, "series").read(), 1))
        return _read_long(spec, blocks, data)
    path = Path(spec)
    check_file(path)
    kind = suffix(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give one file: CSV, TSV, JSONL or parquet")
    separators = {".csv": ",", ".tsv": "\t", ".txt": ","}
    if kind in separators:
        if data.layout == "wide":
            return _read_wide(spec, read_fields(path, separators[kind]), data)
        return _read_long(spec, csv_blocks(path, separators[kind]), data)
    if data.layout == "wide":
        raise UserError(f"{path}: data.layout=wide, one line per series, is for CSV and TSV files")
    if kind in (".jsonl", ".ndjson"):
        return _read_long(spec, json_blocks(spec, read_jsonl(path)), data)
    if kind == ".parquet":
        return _read_long(spec, parquet_blocks(path), data)
    raise UserError(f"{path}: unknown format; give series as CSV, TSV, JSONL or parquet")


def listed(names: str | None) -> list[str]:
    """`a, b` as a list."""
    return [name for part in (names or "").split(",") if (name := part.strip())]


def _read_long(spec: str, blocks: Iterator[Block], data: Options) -> Table:
    first = next(blocks, None)
    if first is None:
        raise UserError(f"{spec}: contains no rows")
    roles = _Roles(spec, list(first[1]), data)
    numbers: dict[str, list[np.ndarray]] = {column: [] for column in roles.candidates}
    times: list[np.ndarray] = []
    lines: list[np.ndarray] = []
    codes: list[np.ndarray] = []
    names: dict[str, int] = {}
    kind = None
    for at, cells in _again(first, blocks):
        if roles.time:
            try:
                found, kind = parse_times(cells[roles.time], kind)
            except OffClock as error:
                raise UserError(f"{spec}:{at[error.row]}: {roles.time}: {error}") from None
            times.append(found)
        for column in roles.numeric(cells):
            numbers[column].append(to_numbers(spec, column, cells[column], at))
        codes.append(_codes(spec, cells[roles.series], at, names) if roles.series else np.zeros(len(at), np.int64))
        lines.append(np.asarray(at))
    columns = roles.found
    if not columns:
        raise UserError(f"{spec}: no numeric column; available: {', '.join(first[1])}")
    values = np.stack([np.concatenate(numbers[column]) for column in columns], axis=1)
    when = _joined(times, roles.time) if roles.time else None
    left_out = [column or "(no name)" for column in roles.candidates if column not in columns]
    return Table(
        spec, columns, values, np.concatenate(codes), list(names) or [""], when, np.concatenate(lines), left_out
    )


class _Roles:
    """The roles of columns. A column without a given role is numeric if its first value is a number."""

    def __init__(self, spec: str, there: list[str], data: Options) -> None:
        self.time, self.series = _when(spec, there, data), data.series
        self.targets, past, known = listed(data.targets), listed(data.past), listed(data.known)
        named = [*filter(None, (self.time, self.series)), *self.targets, *past, *known]
        for column in named:
            if column not in there:
                near = difflib.get_close_matches(column, there, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise UserError(f"{spec}: no column {column!r}; available: {', '.join(there)}{hint}")
            if named.count(column) > 1:
                raise UserError(
                    f"{spec}: column {column!r} is named twice, among {', '.join(named)}; give it only one role"
                )
        self.declared = {*self.targets, *past, *known}
        self.candidates = [
            column for column in there if column in self.declared or (not self.targets and column not in named)
        ]
        self.open = set(self.candidates) - {""}  # not known to be text; a column without a name is an index
        self._seen = set(self.declared)

    def numeric(self, cells: Json) -> list[str]:
        """The numeric columns, as far as known with this block."""
        for column in self.candidates:
            if column in self.open and column not in self._seen:
                value = next((cell for cell in cells[column] if not is_missing(cell)), None)
                if value is not None:
                    self._seen.add(column)
                    if not is_number(value):
                        self.open.discard(column)
        return [column for column in self.candidates if column in self.open]

    @property
    def found(self) -> list[str]:
        """The numeric columns once all is read; one without values is left out, unless it has a given role."""
        return [column for column in self.candidates if column in self.open and column in self._seen]


def _when(spec: str, there: list[str], data: Options) -> str | None:
    if data.time == BY_LINE and BY_LINE not in there:
        return None
    if data.time:
        return data.time
    lower = {name.strip().lower(): name for name in reversed(there)}
    if found := next((lower[name] for name in WHEN if name in lower), None):
        return found
    if len(there) == 1 and ";" in there[0]:
        raise UserError(f"{spec}:1: columns are separated by semicolons; save it with commas (.csv) or tabs (.tsv)")
    raise UserError(
        f"{spec}: no time column found; set -o data.time=NAME (available: {', '.join(there)}), or, if lines are evenly "
        f"spaced and there is none, -o data.time={BY_LINE}"
    )


def _joined(times: list[np.ndarray], column: str) -> np.ndarray:
    """Integers in a column named year are years; in any other they are plain numbers."""
    found = np.concatenate(times)
    if found.dtype.kind == "M":
        return found
    found = as_whole(found)
    if column.strip().lower() == "year" and found.dtype.kind == "i" and found.min() >= 1 and found.max() <= 9999:
        return (found - 1970).astype("datetime64[Y]").astype("datetime64[s]")
    return found


def _read_wide(spec: str, rows: Iterable[tuple[int, list[str]]], data: Options) -> Table:
    if strange := [f"data.{name}" for name in ("time", "targets", "past", "known") if getattr(data, name)]:
        raise UserError(f"{spec}: a wide file has only names and values; leave out {', '.join(strange)}")
    names: dict[str, int] = {}
    values, lines, place = [], [], 0
    for n, (line, fields) in enumerate(rows):
        if n == 0 and (data.series in fields or not any(is_number(cell) for cell in fields[1:])):
            place = fields.index(data.series) if data.series in fields else 0
            continue
        if n == 0 and _are_years(fields[1:]):
            raise UserError(
                f"{spec}:{line}: a header of years, or a series? For a header, set -o data.series={fields[0]}; for a "
                "series, add a header above it"
            )
        name = fields.pop(place).strip()
        if name in names:
            raise UserError(f"{spec}:{line}: duplicate series {name!r}; give each series one line")
        names[name] = len(names)
        while fields and is_missing(fields[-1]):
            fields.pop()
        values.append(to_numbers(spec, VALUE, fields, [line] * len(fields)))
        lines.append(line)
    if not names:
        raise UserError(f"{spec}: contains no rows")
    sizes = [len(row) for row in values]
    flat = np.concatenate(values)[:, None]
    return Table(
        spec, [VALUE], flat, np.repeat(np.arange(len(sizes)), sizes), list(names), None, np.repeat(lines, sizes)
    )


def _are_years(cells: Sequence[str]) -> bool:
    """Whether they are consecutive years."""
    numbers = [int(cell) for cell in cells if cell.strip().isdigit() and 1000 <= int(cell) < 3000]
    return len(numbers) == len(cells) > 2 and all(b - a == 1 for a, b in pairwise(numbers))


def _codes(spec: str, cells: Sequence[Any], lines: Sequence[int], names: dict[str, int]) -> np.ndarray:
    texts = [cell.strip() if isinstance(cell, str) else "" if cell is None else str(cell) for cell in cells]
    if "" in texts:
        raise UserError(f"{spec}:{lines[texts.index('')]}: no series name on this line")
    return np.array([names.setdefault(text, len(names)) for text in texts])


def _again(first: Block, rest: Iterator[Block]) -> Iterator[Block]:
    yield first
    yield from rest
