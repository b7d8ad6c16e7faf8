"""Which column of a table is what: profiles of its columns, from which each shape of data chooses their roles.

A shape raises a question (`ask`) when several columns could have a role and neither names nor contents decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.quoting import short, some
from seqloom.data.columns import as_text
from seqloom.data.files import suffix
from seqloom.data.header import is_date, is_number
from seqloom.data.peek import Peek, peek
from seqloom.data.role_names import DIVISIONS, flag, names_a_text, names_an_identifier, plain
from seqloom.data.rows import READERS

MANY = 30  # rows from which shares are meaningful
UNSEEN = 0.1  # of the next rows of a label column at most so many may have a new value (Good-Turing estimate)
LABEL_LENGTH = 40  # characters of a label, on average
RUNNING = 3  # words of a text, on average; fewer are names or codes
STEPS = 20  # distinct values of a rating with fractions
SEPARATORS = "|;,/"  # between labels, the likeliest first
CODE = re.compile(r"(?=.*\d)[!-~]{1,80}|https?://\S+|\S+@\S+\.\S+|[0-9a-f]{16,}")  # identifiers, addresses, hashes
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(eq=False)
class Column:
    """A column and what its cells are like."""

    name: str  # as the user would type it: its name, or its number if there is no header
    cells: Sequence[Any]
    named: bool = True

    @cached_property
    def values(self) -> list[str]:
        """Cells that are not empty; a list is one line per item."""
        texts = (as_text(cell) for cell in self.cells)
        return [text.strip() for text in texts if isinstance(text, str) and text.strip()]

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.values)

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @property
    def varied(self) -> bool:
        """Most values occur once."""
        return 2 * self.distinct > len(self.values)

    @cached_property
    def filled(self) -> bool:
        return 2 * len(self.values) > len(self.cells)

    @cached_property
    def lists(self) -> bool:
        """Lists with more than one item: several labels."""
        return any(isinstance(cell, list) and len(cell) > 1 for cell in self.cells)

    @cached_property
    def number(self) -> bool:
        return self._mostly(is_number)

    @cached_property
    def words(self) -> float:
        """Words per cell on average; two characters of a script without spaces count as one."""
        found = sum(len(text.split()) + len(CJK.findall(text)) / 2 for text in self.values)
        return found / max(1, len(self.values))

    @cached_property
    def length(self) -> float:
        return sum(map(len, self.values)) / max(1, len(self.values))

    @cached_property
    def identifier(self) -> bool:
        """A name or contents that say which row it is, or where it comes from, but nothing about it."""
        if self.named and (names_an_identifier(self.name) or plain(self.name) in DIVISIONS):
            return not (self.words >= RUNNING and self.varied)  # `id` may also be a language
        codes = self._mostly(lambda value: bool(CODE.fullmatch(value))) and len(self.values) >= 3
        return codes and 1.1 * self.distinct > len(self.values)

    @cached_property
    def template(self) -> bool:
        """Half of every cell or more is the same, as in a licence or an attribution."""
        if len(self.values) < 2:
            return False
        least, most = min(self.values), max(self.values)  # what these two begin with, all do
        common = next((n for n, pair in enumerate(zip(least, most, strict=False)) if pair[0] != pair[1]), len(least))
        return 2 * common >= self.length

    @cached_property
    def wordy(self) -> bool:
        """Something to read: not numbers, dates, identifiers, lists or objects."""
        there = bool(self.values) and not any(isinstance(cell, list | dict) for cell in self.cells)
        return there and not (self.number or self.identifier or self.template or self._mostly(is_date))

    @property
    def running(self) -> bool:
        """Texts of several words, mostly distinct."""
        return self.wordy and self.filled and self.words >= RUNNING and self.varied

    @cached_property
    def label(self) -> bool:
        """Short values that recur."""
        if self.identifier or not self.filled or self._mostly(is_date) or self.length > LABEL_LENGTH:
            return False
        if any(isinstance(cell, dict) for cell in self.cells):
            return False
        whole = all(not is_number(value) or float(value).is_integer() for value in self.counts if _is_finite(value))
        if self.number and not whole and self.distinct > STEPS:
            return False
        return _recurs(self.counts) or self.parts is not None

    @cached_property
    def parts(self) -> str | None:
        """The separator of several labels in one cell, if its parts recur; a list has one per line."""
        found: dict[str, int] = {}
        for mark in ("\n", *SEPARATORS):
            split = [[part.strip() for part in value.split(mark)] for value in self.values]
            several = sum(len(parts) > 1 for parts in split)
            counts = Counter(part for parts in split for part in parts)
            if 5 * several > len(split) and len(counts) < self.distinct and _recurs(counts):
                found[mark] = several
        return max(found, key=lambda mark: found[mark], default=None)

    @property
    def size(self) -> str:
        return f"{self.distinct:,} values" if self.distinct != 1 else "1 value"

    def _mostly(self, test: Any) -> bool:
        return bool(self.values) and sum(map(test, self.values)) >= 0.95 * len(self.values)


def _is_finite(value: str) -> bool:
    return value.strip().lstrip("+-").lower() not in ("nan", "inf", "infinity")


def _recurs(counts: Counter[str]) -> bool:
    """Whether values come again: at least two of them, and hardly any only once."""
    total, single = counts.total(), sum(1 for count in counts.values() if count == 1)
    if total < MANY:
        return len(counts) > 1 and (len(counts) == 2 or len(counts) < total)
    return len(counts) > 1 and single <= UNSEEN * total


class Table:
    """The columns of a file and the options that the user gave: what is left to find."""

    def __init__(self, found: Peek, given: Mapping[str, str], far: bool = False) -> None:
        self.spec, self.header, self.given, self.far = found.name, found.header, given, far
        cells = zip(*found.rows, strict=True)
        self.columns = [Column(name, list(part), found.header) for name, part in zip(found.names, cells, strict=True)]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def free(self, *taken: str | None) -> list[Column]:
        """Columns without a role, in file order."""
        used = {*taken, *self.given.values()}
        return [column for column in self.columns if column.name not in used]

    def has(self, *names: str) -> bool:
        return self.header and all(name in self.names for name in names)

    def find(self, names: Collection[str], among: Iterable[Column]) -> Column | None:
        """The column with one of these (plain) names."""
        return next((column for column in among if self.header and plain(column.name) in names), None)

    def further(self) -> Table:
        """The same columns from more of the file, which may be sorted by one of them."""
        found = None if self.far else peek(self.spec, self.header, far=True)
        return self if found is None else Table(found, self.given, far=True)

    def reason(self, text: str) -> str:
        return text if self.header else f"no header; {text}"


def look(spec: str, given: Mapping[str, object], roles: Sequence[str], *, forgiving: bool = False) -> Table | None:
    """The columns of a file, whose `roles` may be given as names or as numbers; None if it is no table. `forgiving`:
    rows that are not valid are passed over."""
    said = {role: str(given[role]) for role in roles if given.get(role) is not None}
    header = None if not said else not any(value.isdecimal() for value in said.values())
    found = peek(spec, header, forgiving=forgiving)
    if found is None:
        return None
    table = Table(found, said)
    constant = any(column.distinct < 2 and not column.identifier for column in table.free())
    return table.further() if constant else table


def chosen(table: Table, defaults: Mapping[str, str | None], found: Mapping[str, tuple[Column, str]]) -> list[Choice]:
    """What differs from the defaults, and was not given."""
    for role, (column, _) in found.items():
        if not column.name.strip():
            raise UserError(f"{table.spec}: the column found for data.{role} has no name; give it one in the header")
    return [
        Choice(f"data.{role}", column.name, table.reason(reason))
        for role, (column, reason) in found.items()
        if role not in table.given and column.name != defaults.get(role)
    ]


def ask(table: Table, role: str, what: str, columns: Sequence[Column]) -> UserError:
    """The question that --columns answers."""
    counted = {2: "two", 3: "three", 4: "four"}.get(len(columns), f"{len(columns)}")
    shown = ", ".join(f"{short(column.name)} ({_kind(column)})" for column in columns[:6])
    more = ", ..." if len(columns) > 6 else ""
    likely = min(columns, key=lambda column: column.distinct) if role == "label" else columns[0]
    return UserError(
        f"{table.spec}: {counted} columns could be {what}: {shown}{more}; say which: {flag(role, likely.name)}"
    )


def missing(table: Table, role: str, what: str) -> UserError:
    columns = some(table.names)
    there = "the only column is" if len(table.names) == 1 else "columns:"
    if not table.header:
        there = (
            "no header, one column:" if len(table.names) == 1 else f"no header, {len(table.names)} columns, by number:"
        )
    likely = min(table.free(), key=lambda c: c.distinct if role == "label" else -c.length, default=None)
    which = flag(role, likely.name if likely and likely.name.strip() else "NAME")
    return UserError(f"{table.spec}: no column looks like {what}; say which: {which}; {there} {columns}")


def _kind(column: Column) -> str:
    return column.size if column.label or not column.varied else f"{column.words:.0f} words on average"


def texts_of(columns: Sequence[Column]) -> list[Column]:
    """Columns that could be the text, by the strongest evidence there is: running texts, else short ones that vary,
    else the longest of those that can be read at all."""
    if running := [column for column in columns if column.running]:
        return running
    if short := [c for c in columns if c.wordy and c.filled and c.varied and not c.label]:
        return short
    readable = [column for column in columns if column.wordy and column.filled]
    return [max(readable, key=lambda column: column.length)] if readable else []


def the_text(table: Table, columns: Sequence[Column], role: str = "text") -> tuple[Column, str]:
    """The only one that could be the text, or the only one of them that is named like one."""
    found = texts_of(columns)
    if not found:
        raise missing(table, role, "a text")
    named = [column for column in found if table.header and names_a_text(column.name)]
    best = named if len(named) == 1 else found
    if len(best) > 1:
        raise ask(table, role, "the text", named or found)
    return best[0], f"{best[0].words:.0f} words on average" if best[0].running else "the only readable column"


def text_roles(spec: str, given: Mapping[str, object]) -> list[Choice]:
    """The text column of a table, for running text; plain text has none."""
    if given.get("column") is not None or suffix(Path(spec)) not in READERS:
        return []
    table = look(spec, {}, ())
    if table is None or table.has("text"):
        return []
    return chosen(table, {"column": "text"}, {"column": the_text(table, table.columns)})
