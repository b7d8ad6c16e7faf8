"""Tables read in blocks of lines, column by column: CSV, TSV, JSONL and parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.data.files import read_text
from seqloom.data.parquet import cells_of, parquet_batches
from seqloom.data.rows import check_header, read_fields, uneven
from seqloom.data.shapes.series.cells import is_missing, is_number

BLOCK = 1 << 15  # lines held as text at once

Block = tuple[Sequence[int], Json]  # line numbers, and the cells of each column


def csv_blocks(path: Path, separator: str) -> Iterator[Block]:
    """A first line of numbers only is not a header: the columns are then named 1, 2, ..."""
    header: list[str] = []
    for lines, columns in _fields(path, separator):
        if not header:
            first = [cells[0] for cells in columns]
            bare = all(is_number(cell) or is_missing(cell) for cell in first)
            header = [str(n) for n in range(1, len(first) + 1)] if bare else [name.strip() for name in first]
            check_header(path, lines[0], header)
            if not bare:
                lines, columns = lines[1:], [cells[1:] for cells in columns]
        if lines:
            yield lines, dict(zip(header, columns, strict=True))


def _fields(path: Path, separator: str) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Line numbers and columns of each block. Until a quote occurs, all cells of a block are split at once, three times
    as fast as line by line."""
    done = width = 0
    for lines, texts in _plain_lines(path):
        if not lines:
            break
        width = width or texts[0].count(separator) + 1
        for line, text in zip(lines, texts, strict=True):
            if text.count(separator) + 1 != width:
                raise uneven(path, line, text.count(separator) + 1, width, separator)
        cells = separator.join(texts).split(separator)
        yield lines, [cells[n::width] for n in range(width)]
        done += len(lines)
    else:
        return
    rows = islice(read_fields(path, separator), done, None)
    while block := list(islice(rows, BLOCK)):
        width = width or len(block[0][1])
        for line, fields in block:
            if len(fields) != width:
                raise uneven(path, line, len(fields), width, separator)
        yield [line for line, _ in block], [[fields[n] for _, fields in block] for n in range(width)]


def _plain_lines(path: Path) -> Iterator[tuple[list[int], list[str]]]:
    """Non-empty lines with their numbers, in blocks; an empty block once a quote occurs."""
    number, rest = 1, ""
    for text in chain(read_text(path), ["\n"]):
        whole, ended, rest = (rest + text).rpartition("\n")
        if not ended:
            continue
        if '"' in whole:
            yield [], []
            return
        texts = whole.split("\n")
        found = [(line, text) for line, text in enumerate(texts, number) if text.strip(" ")]
        number += len(texts)
        if found:
            lines, full = zip(*found, strict=True)
            yield list(lines), list(full)


def json_blocks(spec: str, rows: Iterator[tuple[int, Json]]) -> Iterator[Block]:
    """A column absent from a row is missing there."""
    header: Json = {}
    while block := list(islice(rows, BLOCK)):
        header = header or block[0][1]
        for line, row in block:
            if strange := row.keys() - header.keys():
                raise UserError(
                    f"{spec}:{line}: {quoted(sorted(strange)[0])} is not in the first row; add it there, as null"
                )
        yield [line for line, _ in block], {name: [row.get(name) for _, row in block] for name in header}


def parquet_blocks(path: Path) -> Iterator[Block]:
    """Line numbers are those of the rows, from 1."""
    done = 0
    for names, batch in parquet_batches(path):
        cells = {name: cells_of(path, name, column) for name, column in zip(names, batch.columns, strict=True)}
        if len(batch):
            yield range(done + 1, done + len(batch) + 1), cells
        done += len(batch)
