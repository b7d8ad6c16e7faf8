"""Long tables of series, a line for each time step (of each series), read in blocks of lines with every cell checked;
nothing is sorted here.

Cells are first read as plain numbers and ISO dates. If one is neither, the whole file is read once more to find how its
numbers and dates are written, and then again.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, some
from seqloom.core.rows import Json
from seqloom.data.role_names import flag
from seqloom.data.shapes.series.blocks import Block
from seqloom.data.shapes.series.cells import (
    STYLES,
    NotPlain,
    Style,
    as_plain,
    is_formatted,
    is_missing,
    is_number,
    narrowed,
    settled,
    to_numbers,
)
from seqloom.data.shapes.series.dates import Ambiguous, Order, find_order, joined, parse_ordered, without_separators
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.times import OffClock, as_whole, parse_times

BY_LINE = "line"  # data.time if there is no time column
DATED = {"time", "date", "datetime", "timestamp", "ds", "month", "day", "时间", "日期", "月份", "年月"}


@dataclass
class Table:
    """Rows in file order."""

    name: str  # what the user typed
    columns: list[str]  # numeric ones, and coded ones
    values: np.ndarray  # (N, columns) float64; NaN: missing
    series: np.ndarray  # (N,) index of the series of each row
    names: list[str]  # of the series
    times: np.ndarray | None  # (N,) seconds or numbers; None: lines are evenly spaced
    lines: np.ndarray  # (N,) line number of each row
    left_out: list[str] = field(default_factory=list)  # non-numeric columns that have no role
    texts: dict[str, list[str]] = field(default_factory=dict)  # columns of texts: the text of each code


@dataclass(frozen=True)
class Written:
    """How the cells of a file are written; empty: plain numbers and ISO dates."""

    numbers: Mapping[str, Style] = field(default_factory=dict)  # a column that is absent is text
    dates: Order = "iso"
    known: bool = False  # the whole file was looked at


def listed(names: str | None) -> list[str]:
    """`a, b` as a list."""
    return [name for part in (names or "").split(",") if (name := part.strip())]


def read_long(spec: str, blocks: Callable[[], Iterator[Block]], data: Options, separator: str = "") -> Table:
    """`blocks`: reads the file from its start; `separator`: between columns, if it is text."""
    try:
        return _read(spec, blocks(), data, Written())
    except NotPlain:
        return _read(spec, blocks(), data, _look(spec, blocks(), data, separator))


def _look(spec: str, blocks: Iterator[Block], data: Options, separator: str) -> Written:
    """How numbers and dates are written, from all cells."""
    styles: dict[str, frozenset[Style]] = {}
    plain: set[str] = set()  # columns that begin with a plain number: what follows must be numbers
    times: list[Any] = []
    roles: Roles | None = None
    for _, block in blocks:
        roles = roles or Roles(spec, list(block), data)
        for column in roles.candidates:
            value = next((cell for cell in block[column] if not is_missing(cell)), None)
            if column not in styles and value is not None and is_number(value):
                plain.add(column)
            if column in styles or value is not None:
                styles[column] = narrowed(styles.get(column, STYLES), block[column])
        times += list(block[roles.time[0]]) if len(roles.time) == 1 else []
    assert roles is not None
    try:
        numbers = settled(styles, separator)
        order = find_order(times, data.dayfirst) if times else None
    except Ambiguous as error:
        raise UserError(f"{spec}: {roles.time[0]}: {error}; set -o data.dayfirst=true or false") from None
    except UserError as error:
        raise UserError(f"{spec}: {error}") from None
    refused: dict[str, Style] = dict.fromkeys(plain - numbers.keys(), "plain")  # with the line of the first cell
    return Written(numbers | refused, order or "iso", True)


def _read(spec: str, blocks: Iterator[Block], data: Options, written: Written) -> Table:
    first = next(blocks, None)
    if first is None:
        raise UserError(f"{spec}: contains no rows")
    roles = Roles(spec, list(first[1]), data, written)
    numbers: dict[str, list[np.ndarray]] = {column: [] for column in roles.candidates}
    times: list[np.ndarray] = []
    lines: list[np.ndarray] = []
    codes: list[np.ndarray] = []
    names: dict[str, int] = {}
    kind = None
    for at, cells in _again(first, blocks):
        if roles.time:
            found, kind = _times(spec, at, [cells[name] for name in roles.time], kind, roles, written)
            times.append(found)
        for column in roles.numeric(cells):
            if column in roles.texts:
                numbers[column].append(_coded(cells[column], roles.texts[column]))
            else:
                style = written.numbers.get(column, "plain")
                plain = cells[column] if style == "plain" else as_plain(cells[column], style)
                numbers[column].append(to_numbers(spec, column, plain, at))
        codes.append(_codes(spec, cells[roles.series], at, names) if roles.series else np.zeros(len(at), np.int64))
        lines.append(np.asarray(at))
    columns = roles.found
    if not columns:
        raise UserError(f"{spec}: no numeric column; available: {some(first[1])}")
    values = np.stack([np.concatenate(numbers[column]) for column in columns], axis=1)
    return Table(
        spec,
        columns,
        values,
        np.concatenate(codes),
        list(names) or [""],
        _joined(times, roles.time[0]) if roles.time else None,
        np.concatenate(lines),
        [column or "(no name)" for column in roles.candidates if column not in columns],
        {column: list(texts) for column, texts in roles.texts.items()},
    )


def _times(
    spec: str, at: Sequence[int], cells: Sequence[Any], kind: str | None, roles: Roles, written: Written
) -> tuple[np.ndarray, str]:
    try:
        if len(cells) > 1:
            return joined(cells), "date"
        if written.dates != "iso":
            return parse_ordered(cells[0], written.dates), "date"
        return parse_times(cells[0], kind)
    except OffClock as error:
        # a date in another order: the whole column may show which
        refuse = UserError if written.known or len(cells) > 1 else NotPlain
        raise refuse(f"{spec}:{at[error.row]}: {', '.join(roles.time)}: {error}") from None


class Roles:
    """The roles of columns. A column without a given role is numeric if its first value is a number; a covariate whose
    first value is no number has texts, which are coded."""

    def __init__(self, spec: str, there: list[str], data: Options, written: Written | None = None) -> None:
        self.time, self.series = _when(spec, there, data), data.series
        self.targets, past, known = listed(data.targets), listed(data.past), listed(data.known)
        named = [*self.time, *filter(None, (self.series,)), *self.targets, *past, *known]
        for column in named:
            if column not in there:
                near = difflib.get_close_matches(column, there, n=1, cutoff=0.6)
                hint = f"; did you mean {quoted(near[0])}?" if near else ""
                raise UserError(f"{spec}: no column {quoted(column)}; available: {some(there)}{hint}")
            if named.count(column) > 1:
                raise UserError(
                    f"{spec}: column {quoted(column)} is named twice, among {some(named)}; give it only one role"
                )
        self.covariates = {*past, *known}
        self.declared = {*self.targets, *self.covariates}
        self.candidates = [
            column for column in there if column in self.declared or (not self.targets and column not in named)
        ]
        self.texts: dict[str, dict[str, int]] = {}
        self.open = set(self.candidates) - {""}  # not known to be text; a column without a name is an index
        self.written = written or Written()
        if self.written.known:
            self.open &= {*self.written.numbers, *self.declared}
        self._seen = set(self.targets)

    def numeric(self, cells: Json) -> list[str]:
        """The numeric and the coded columns, as far as known with this block."""
        for column in self.candidates:
            if column in self.open and column not in self._seen:
                value = next((cell for cell in cells[column] if not is_missing(cell)), None)
                if value is not None:
                    self._seen.add(column)
                    self._decide(column, value)
        return [column for column in self.candidates if column in self.open]

    def _decide(self, column: str, value: Any) -> None:
        if is_number(value) or self.written.numbers.get(column, "plain") != "plain":
            return
        if not self.written.known and is_formatted(value):
            raise NotPlain(f"column {quoted(column)}: {quoted(value)} is not a plain number")
        if column in self.covariates and isinstance(value, str) and not value.strip().endswith("%"):
            self.texts[column] = {}
        elif column not in self.declared:
            self.open.discard(column)

    @property
    def found(self) -> list[str]:
        """The columns once all is read; one without values is left out, unless it has a given role."""
        seen = self._seen | self.declared
        return [column for column in self.candidates if column in self.open and column in seen]


def _when(spec: str, there: list[str], data: Options) -> list[str]:
    """The time column, or those over which times are split; none if lines are evenly spaced."""
    if data.time == BY_LINE and BY_LINE not in there:
        return []
    if data.time:
        parts = listed(data.time)
        return [data.time] if data.time in there or len(parts) < 2 else parts
    raise UserError(
        f"{spec}: no time column found; set {flag('time')} (available: {some(there)}), or, if lines are evenly "
        f"spaced and there is none, {flag('time', BY_LINE)}"
    )


def _joined(times: list[np.ndarray], column: str) -> np.ndarray:
    """Integers in a column named year are years, those like 20210104 dates; any other are plain numbers."""
    found = np.concatenate(times)
    if found.dtype.kind == "M":
        return found
    found = as_whole(found)
    name = column.strip().lower()
    years = name in ("year", "年", "年份")
    if years and found.dtype.kind == "i" and found.min() >= 1 and found.max() <= 9999:
        return (found - 1970).astype("datetime64[Y]").astype("datetime64[s]")
    dates = without_separators(found, name in DATED)
    return found if dates is None else dates


def _coded(cells: Sequence[Any], codes: dict[str, int]) -> np.ndarray:
    """The code of each text, NaN where it is missing."""
    found = (None if is_missing(cell) else codes.setdefault(str(cell).strip(), len(codes)) for cell in cells)
    return np.array([np.nan if code is None else code for code in found], np.float64)


def _codes(spec: str, cells: Sequence[Any], lines: Sequence[int], names: dict[str, int]) -> np.ndarray:
    texts = [cell.strip() if isinstance(cell, str) else "" if cell is None else str(cell) for cell in cells]
    if "" in texts:
        raise UserError(f"{spec}:{lines[texts.index('')]}: no series name on this line")
    return np.array([names.setdefault(text, len(names)) for text in texts])


def _again(first: Block, rest: Iterator[Block]) -> Iterator[Block]:
    yield first
    yield from rest
