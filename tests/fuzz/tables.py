"""Tables: rows of named cells, and how each format writes them. What spoils a table works on the rows (spoiled.py)."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fuzz.case import File, binary

Cell = Any  # text or a number; in JSONL and parquet also None, a list, a dict


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def at(self, name: str) -> int:
        return self.header.index(name)

    def with_cell(self, row: int, column: int, cell: Cell) -> Table:
        changed = list(self.rows[row])
        changed[column] = cell
        return replace(self, rows=(*self.rows[:row], tuple(changed), *self.rows[row + 1 :]))

    def with_column(self, column: int, make: Callable[[int, Cell], Cell]) -> Table:
        def one(number: int, row: tuple[Cell, ...]) -> tuple[Cell, ...]:
            return (*row[:column], make(number, row[column]), *row[column + 1 :])

        return replace(self, rows=tuple(one(number, row) for number, row in enumerate(self.rows)))

    def without(self, column: int) -> Table:
        header = self.header[:column] + self.header[column + 1 :]
        return Table(header, tuple(row[:column] + row[column + 1 :] for row in self.rows))

    def renamed(self, column: int, name: str) -> Table:
        return replace(self, header=(*self.header[:column], name, *self.header[column + 1 :]))


def delimited(table: Table, separator: str = ",", end: str = "\n") -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=end)
    writer.writerow(table.header)
    writer.writerows([[as_text(cell) for cell in row] for row in table.rows])
    return out.getvalue().encode("utf-8", "surrogatepass")


def as_text(cell: Cell) -> str:
    return (
        cell
        if isinstance(cell, str)
        else ""
        if cell is None
        else json.dumps(cell)
        if isinstance(cell, list | dict)
        else str(cell)
    )


def jsonl(table: Table) -> bytes:
    return "".join(json.dumps(dict(zip(table.header, row, strict=True))) + "\n" for row in table.rows).encode()


def parquet(table: Table) -> bytes:
    """Cells of a column that are of several kinds become texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = []
    for number in range(len(table.header)):
        cells = [row[number] for row in table.rows]
        try:
            columns.append(pa.array(cells))
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError):
            columns.append(pa.array([as_text(cell).encode("utf-8", "replace").decode() for cell in cells]))
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=list(table.header)), out)
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], bytes]] = {
    "csv": delimited,
    "tsv": lambda table: delimited(table, "\t"),
    "jsonl": jsonl,
    "parquet": parquet,
    "semicolons.csv": lambda table: delimited(table, ";"),
    "crlf.csv": lambda table: delimited(table, end="\r\n"),
    "cr.csv": lambda table: delimited(table, end="\r"),
    "bom.csv": lambda table: b"\xef\xbb\xbf" + delimited(table),
    "utf16.csv": lambda table: delimited(table).decode("utf-8", "replace").encode("utf-16"),
    "csv.gz": lambda table: gzip.compress(delimited(table), mtime=0),
    "tsv.bz2": lambda table: bz2.compress(delimited(table, "\t")),
    "jsonl.xz": lambda table: lzma.compress(jsonl(table)),
}
TEXTS = [name for name in FORMATS if name != "parquet"]
UTF8 = ["csv", "tsv", "jsonl", "semicolons.csv", "crlf.csv"]  # of which damage to bytes is damage to the text


def written(table: Table, name: str, kind: str) -> File:
    return binary(f"{name}.{kind}", FORMATS[kind](table))
