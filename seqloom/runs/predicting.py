"""Predictions beside the rows that they are for: the file's own columns, then those of the prediction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

from seqloom.core.errors import UserError, check_encodable
from seqloom.core.rows import Row
from seqloom.data.flat import ACTUAL
from seqloom.data.rows import Rows
from seqloom.runs.material import Material
from seqloom.tokenizers.options import NoTokenizer

RESERVED = frozenset({"line", "reason", "cut"})  # fields that only some predictions have, and the line number
EMPTY = "an empty text"


def text_row(material: Material, text: str, line: int = 1, **others: str | None) -> Row:
    """A row to predict from that is in no file; `others`: what the model reads beside the text, by role."""
    task, shape = material.config.task["name"], material.shape
    given = {role: other for role, other in others.items() if other is not None}
    wanted = [role for role, option in shape.beside.items() if getattr(material.options, option) is not None]
    if shape.tokenizer is NoTokenizer:
        raise UserError(f"--text: this {task} run reads numbers, not text; give --data FILE")
    if strange := [role for role in given if role not in wanted]:
        reads = f"a text and --{wanted[0]}" if wanted else "one text"
        raise UserError(f"--{strange[0]}: this {task} run reads {reads}; leave it out")
    if missing := [role for role in wanted if role not in given]:
        raise UserError(f"--{missing[0]}: missing; this {task} run reads two texts: give --{missing[0]} TEXT")
    for role, one in {"text": text, **given}.items():
        check_encodable(f"--{role}", one)
    return {"line": line, "source": text, **given}


class Sources(Iterator[Row]):
    """Rows to predict from, counted as they are read."""

    def __init__(self, read: Callable[[], Iterator[Row]], spec: str = "") -> None:
        self._read, self.spec, self._rows, self.count = read, spec, read(), 0

    def __next__(self) -> Row:
        row = next(self._rows)
        self.count += 1
        return row

    @cached_property
    def total(self) -> int:
        """Of all rows; reads them once more."""
        return sum(1 for _ in self._read())


class Predictions(Iterator[Row]):
    """One row after the other; `complete`: every row of a table is there, in order, with all its columns."""

    def __init__(self, rows: Iterator[Row], sources: Sources | None = None, complete: bool = False) -> None:
        self._rows, self._sources, self.complete = rows, sources, complete

    def __next__(self) -> Row:
        for row in self._rows:
            return row
        if self._sources is not None and self._sources.count == 0:
            raise UserError(f"{self._sources.spec}: contains no rows to predict from")
        raise StopIteration

    @property
    def read(self) -> int:
        """How many sources were read so far."""
        return self._sources.count if self._sources else 0

    @property
    def total(self) -> int:
        """How many there are; 0 if they are not from a file."""
        return self._sources.total if self._sources else 0


def beside(rows: Rows, predictions: Iterator[Row], echoes: Mapping[str, str]) -> Iterator[Row]:
    """Each row of a file with its prediction, which has the same line number; both are read as they are taken.

    `echoes`: fields of a prediction that repeat a column of the file, and its name. A row without a prediction stays,
    with empty fields and the reason.
    """
    pending = next(predictions, None)
    repeated: set[str] | None = None
    fields: list[str] = []
    for line, row in rows:
        if repeated is None:
            repeated = {field for field, column in echoes.items() if column in row}
            fields = [field for field in pending or () if field not in repeated | RESERVED]
        own = {"line": line} | _own(row, {*fields, *RESERVED})
        if pending is None or pending["line"] != line:
            yield own | dict.fromkeys(fields) | {"reason": EMPTY}
            continue
        yield own | {field: value for field, value in pending.items() if field not in repeated}
        pending = next(predictions, None)


def _own(row: Row, taken: Collection[str]) -> Row:
    """The columns of a row; one whose name is taken gets another."""
    found: Row = {}
    for name, value in row.items():
        while name in taken or name in found:
            name += ACTUAL
        found[name] = value
    return found
