"""Predictions as a file: JSON lines, or a flat table (CSV, TSV, parquet).

A table has its columns in its first line or schema, but a field may occur for the first time in the last prediction.
So predictions are first written to a temporary file without a name, and the table is made from that: memory does not
grow with their number.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Row
from seqloom.data.flat import flat
from seqloom.runs.durable import make_folder, new_file, writing

_AT_ONCE = 10_000  # rows of a parquet file in memory
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # what a formula may begin with
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(e[+-]?\d+)?%?", re.ASCII | re.IGNORECASE)


def check_output(out: Path) -> None:
    """Refuse a format that cannot be written before the work begins."""
    kind = out.suffix.lower()
    if kind not in (".jsonl", *_WRITERS):
        raise UserError(f"{out}: unknown format; let the name end in .jsonl, .csv, .tsv or .parquet")
    if kind == ".parquet":
        _pyarrow(out)


def write_predictions(predictions: Iterable[Row], out: Path, complete: bool = False) -> tuple[int, int]:
    """The number of predictions, and of those from a truncated source; the file is there only when it is finished.

    `complete`: they are beside all rows of a table (`Predictions.complete`), so that a table needs no line numbers.
    """
    make_folder(out.parent)
    if (kind := out.suffix.lower()) == ".jsonl":
        with new_file(out) as file:
            return _write_lines(predictions, file)
    with _spool(out) as spool, new_file(out) as file:
        columns = _Columns()
        counted = _write_lines((columns.flat(_without_line(row) if complete else row) for row in predictions), spool)
        _WRITERS[kind](_again(spool), columns, file)
    return counted


def _spool(out: Path) -> IO[bytes]:
    with writing(out):
        return tempfile.TemporaryFile(dir=out.parent)


def _without_line(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "line"}


def _write_lines(rows: Iterable[Row], file: IO[bytes]) -> tuple[int, int]:
    count = cut = 0
    for row in rows:
        file.write(to_json(row) + b"\n")
        count, cut = count + 1, cut + bool(row.get("cut"))
    return count, cut


def _again(spool: IO[bytes]) -> Iterator[Row]:
    spool.seek(0)
    return (json.loads(line) for line in spool)


class _Columns:
    """The columns of a table, and the kinds of their values, found while rows become flat."""

    def __init__(self) -> None:
        self.kinds: dict[str, set[type]] = {}
        self.nested: set[str] = set()  # fields that became several columns

    @property
    def names(self) -> list[str]:
        return [name for name in self.kinds if name not in self.nested]

    def flat(self, row: Row) -> Row:
        """As `flat` does, with lists as JSON."""
        self.nested |= {name for name, value in row.items() if isinstance(value, dict)}
        found = {
            name: _cell(value) for name, value in flat(row).items() if value is not None or name not in self.nested
        }
        for name, value in found.items():
            self.kinds.setdefault(name, set()).update({type(value)} if value is not None else ())
        return found


def _cell(value: Any) -> Any:
    return to_json(value).decode() if isinstance(value, dict | list) else value


def _write_fields(rows: Iterator[Row], columns: _Columns, file: BinaryIO, delimiter: str) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer, names = csv.writer(text, delimiter=delimiter), columns.names
    writer.writerow(map(inert, names))
    writer.writerows([inert(row.get(name)) for name in names] for row in rows)
    text.detach()


def inert(cell: Any) -> Any:
    """A cell of CSV or TSV that no spreadsheet takes for a formula: a leading apostrophe makes it a text."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _write_csv(rows: Iterator[Row], columns: _Columns, file: BinaryIO) -> None:
    _write_fields(rows, columns, file, ",")


def _write_tsv(rows: Iterator[Row], columns: _Columns, file: BinaryIO) -> None:
    _write_fields(rows, columns, file, "\t")


def _write_parquet(rows: Iterator[Row], columns: _Columns, file: BinaryIO) -> None:
    arrow, parquet = _pyarrow(None)
    kinds = {name: _kind(columns.kinds[name]) for name in columns.names}
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    schema = arrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with parquet.ParquetWriter(file, schema) as writer:
        while block := list(islice(rows, _AT_ONCE)):
            cells = {name: [_as(kind, row.get(name)) for row in block] for name, kind in kinds.items()}
            writer.write_table(arrow.table(cells, schema=schema))


def _kind(found: set[type]) -> type:
    """One type for all values of a column: text, if they differ."""
    if found in ({bool}, {int}, {float}):
        return next(iter(found))
    return float if found == {int, float} else str


def _as(kind: type, value: Any) -> Any:
    if value is None or isinstance(value, kind):
        return value
    return float(value) if kind is float else str(value)


def _pyarrow(out: Path | None) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{out}: parquet needs the pyarrow package: pip install 'seqloom[data]'") from None
    return pyarrow, parquet


_WRITERS: dict[str, Callable[[Iterator[Row], _Columns, BinaryIO], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
}
