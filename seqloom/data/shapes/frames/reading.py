"""Labelled sequences of measurements, such as speech frames or sensor readings: (time, features), held in memory.

NPZ     `frames` (all, features) with `offsets` (rows + 1): row i is frames[offsets[i]:offsets[i + 1]]; or one array
        (rows, time, features), with `lengths` where they differ; and an array of labels
tables  CSV, TSV, JSONL, parquet: one line per time step, a column that names its sequence, one with its label, and
        numbers in all others
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, short, some
from seqloom.core.rows import Json
from seqloom.data.columns import as_text
from seqloom.data.files import check_file, suffix
from seqloom.data.numbers import LARGEST_SINGLE, as_number
from seqloom.data.parquet import cells_of, parquet_batches
from seqloom.data.role_names import flag
from seqloom.data.rows import READERS
from seqloom.data.samples import SAMPLES, find_sample
from seqloom.data.shapes.frames.npz import FRAMES, read_npz

Sequenced = tuple[np.ndarray, tuple[str, ...]]  # measurements, labels


class FrameSource:
    """Sequences (time, features) in float32, each with its labels; empty ones are left out, and counted."""

    unit = "sequences"

    def __init__(
        self,
        name: str,
        frames: Sequence[np.ndarray],
        labels: Sequence[tuple[str, ...]],
        multi: bool = False,
        dropped: int = 0,
    ) -> None:
        self.name, self.multi, self.dropped = name, multi, dropped
        self.frames, self.row_labels = list(frames), list(labels)

    @property
    def count(self) -> int:
        return len(self.frames)

    @property
    def features(self) -> int:
        return self.frames[0].shape[1]

    @property
    def bytes(self) -> int:
        return sum(frames.nbytes for frames in self.frames)

    @property
    def labels(self) -> Counter[str]:
        return Counter(label for labels in self.row_labels for label in labels)

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(str(self.row_labels).encode())
        for frames in self.frames:
            digest.update(str(frames.shape).encode() + np.ascontiguousarray(frames).tobytes())
        return digest.hexdigest()

    def rows(self) -> Iterator[Sequenced]:
        return zip(self.frames, self.row_labels, strict=True)

    all = rows

    def key(self, row: Sequenced) -> str:
        return hashlib.blake2b(np.ascontiguousarray(row[0]).tobytes()).hexdigest()

    def like(self, name: str, read: Callable[[], Iterator[Sequenced]]) -> FrameSource:
        chosen = list(read())
        labels = [labels for _, labels in chosen]
        return FrameSource(name, [frames for frames, _ in chosen], labels, self.multi, self.dropped)


def open_frames(
    spec: str,
    label: str = "label",
    row: str = "id",
    column: str = FRAMES,
    separator: str | None = None,
    labelled: bool = True,
) -> FrameSource:
    """`labelled`: False if no labels are needed, and those that are there do not matter; `row`: column that names the
    sequence of a line; `column`: the array of an NPZ file; `separator`: between the labels of one sequence, if it may
    have several."""
    if spec.startswith("sample:"):
        found = [(frames, str(name)) for frames, name in find_sample(spec, "frames").read()]
    else:
        path = Path(spec)
        check_file(path)
        kind = suffix(path)
        if kind == ".npz":
            found = list(read_npz(path, label if labelled else None, column))
        elif kind in READERS or kind == ".parquet":
            found = list(_read_table(path, label, row, labelled))
        else:
            raise UserError(f"{path}: unknown format; give measurements as NPZ, CSV, TSV, JSONL or parquet")
    labels = [tuple(filter(None, map(str.strip, name.split(separator) if separator else [name]))) for _, name in found]
    kept = [n for n, (frames, _) in enumerate(found) if len(frames)]
    if not kept:
        raise UserError(f"{spec}: contains no sequences" + ("; all of them are empty" if found else ""))
    dropped = len(found) - len(kept)
    return FrameSource(spec, [found[n][0] for n in kept], [labels[n] for n in kept], separator is not None, dropped)


def holds_frames(spec: str) -> bool:
    """Whether it certainly holds measurements; a table may hold texts."""
    if spec.startswith("sample:"):
        known = SAMPLES.get(spec.removeprefix("sample:"))
        return known is not None and known.kind == "frames"
    return suffix(Path(spec)) in (".npz", ".parquet")


def _read_table(path: Path, label: str, row: str, labelled: bool) -> Iterator[tuple[np.ndarray, str]]:
    """Lines of one sequence are contiguous and in time order; the columns are those of the first line."""
    done: set[str] = set()
    columns: list[str] = []
    for name, lines in groupby(_table_rows(path), key=lambda line: _cell(path, line, row, "row")):
        steps = list(lines)
        columns = columns or _measured(path, steps[0], row, label)
        if name in done:
            raise UserError(
                f"{path}:{steps[0][0]}: sequence {quoted(name)} is interrupted; sort the lines by {quoted(row)}"
            )
        done.add(name)
        named = {_cell(path, step, label, "label") for step in steps} if labelled else {""}
        if len(named) > 1:
            raise UserError(
                f"{path}:{steps[0][0]}: sequence {quoted(name)} has several labels: {some(sorted(named))}; give it one"
            )
        frames = [_numbers(path, step, columns, 1 + (label in step[1])) for step in steps]
        yield np.array(frames, np.float32), named.pop()


def _measured(path: Path, line: tuple[int, Json], row: str, label: str | None) -> list[str]:
    number, cells = line
    if found := [name for name in cells if name not in (row, label)]:
        return found
    raise UserError(f"{path}:{number}: no column of measurements; available: {some(cells)}")


def _table_rows(path: Path) -> Iterator[tuple[int, Json]]:
    return _parquet_rows(path) if suffix(path) == ".parquet" else READERS[suffix(path)](path)


def _parquet_rows(path: Path) -> Iterator[tuple[int, Json]]:
    number = 0
    for names, batch in parquet_batches(path):
        columns = [cells_of(path, name, column) for name, column in zip(names, batch.columns, strict=True)]
        plain = [c.astype(str) if isinstance(c, np.ndarray) and c.dtype.kind == "M" else c for c in columns]
        for cells in zip(*plain, strict=True):
            number += 1
            yield number, dict(zip(names, cells, strict=True))


def _cell(path: Path, line: tuple[int, Json], column: str, role: str) -> str:
    number, row = line
    if column not in row:
        texts = any(isinstance(cell, str) and " " in cell for cell in row.values()) and suffix(path) == ".parquet"
        hint = "texts are read from CSV or JSONL, not from parquet" if texts else flag(role)
        raise UserError(f"{path}:{number}: no column {quoted(column)}; available: {some(row)}; {hint}")
    value = as_text(row[column].item() if isinstance(row[column], np.generic) else row[column])
    if not isinstance(value, str) or not value.strip():
        what = "name of its sequence" if role == "row" else role
        raise UserError(f"{path}:{number}: no {what}: column {quoted(column)} is {quoted(row[column])}")
    return value


def _numbers(path: Path, line: tuple[int, Json], columns: list[str], others: int) -> list[float]:
    """The measurements of one line, always in the same order; `others`: columns that are none."""
    number, row = line
    if len(row) != len(columns) + others or not row.keys() >= set(columns):
        lost = next((f", without {quoted(name)}" for name in columns if name not in row), "")
        raise UserError(f"{path}:{number}: other columns than on the first line{lost}; give all lines the same ones")
    return [_number(path, number, name, row[name]) for name in columns]


def _number(path: Path, line: int, column: str, value: Any) -> float:
    place = f"{path}:{line}: {short(column)}={quoted(value)}"
    try:
        number = as_number(value)
    except (TypeError, ValueError):
        raise UserError(f"{place} is not a number") from None
    if not math.isfinite(number):
        raise UserError(f"{place} is not finite; fix it or remove the sequence")
    if abs(number) > LARGEST_SINGLE:
        raise UserError(f"{place} is beyond {LARGEST_SINGLE:g}, too large for single precision; fix it or rescale it")
    return number
