"""Labelled sequences of measurements, such as speech frames or sensor readings: (time, features), held in memory.

NPZ     `frames` (all, features) with `offsets` (rows + 1): row i is frames[offsets[i]:offsets[i + 1]]; or one array
        (rows, time, features), with `lengths` where they differ; and an array of labels
tables  CSV, TSV, JSONL, parquet: one line per time step, a column that names its sequence, one with its label, and
        numbers in all others
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.files import check_file, suffix
from seqloom.data.role_names import flag
from seqloom.data.rows import READERS
from seqloom.data.samples import SAMPLES, find_sample

FRAMES, OFFSETS, LENGTHS = "frames", "offsets", "lengths"

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
    spec: str, label: str | None = "label", row: str = "id", column: str = FRAMES, separator: str | None = None
) -> FrameSource:
    """`label`: None if no labels are needed; `row`: column that names the sequence of a line; `column`: the array of an
    NPZ file; `separator`: between the labels of one sequence, if it may have several."""
    if spec.startswith("sample:"):
        found = [(frames, str(name)) for frames, name in find_sample(spec, "frames").read()]
    else:
        path = Path(spec)
        check_file(path)
        kind = suffix(path)
        if kind == ".npz":
            found = list(_read_npz(path, label, column))
        elif kind in READERS or kind == ".parquet":
            found = list(_read_table(path, label, row))
        else:
            raise UserError(f"{path}: unknown format; give measurements as NPZ, CSV, TSV, JSONL or parquet")
    labels = [tuple(part.strip() for part in (name.split(separator) if separator else [name])) for _, name in found]
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


def _read_npz(path: Path, label: str | None, column: str) -> Iterator[tuple[np.ndarray, str]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{path}: not an NPZ file of plain arrays ({error})") from None
    name = column if column in arrays else FRAMES
    if name not in arrays or (label is not None and label not in arrays):
        missing, role = (name, "frames") if name not in arrays else (label, "label")
        raise UserError(f"{path}: no array {missing!r}; available: {', '.join(arrays) or 'none'}; {flag(role)}")
    frames = _numbers(path, name, arrays[name])
    rows = _rows(path, name, frames, arrays)
    labels = [""] * len(rows) if label is None else [str(value) for value in arrays[label].tolist()]
    if len(labels) != len(rows):
        raise UserError(f"{path}: {len(rows):,} sequences in {name!r}, but {len(labels):,} labels in {label!r}")
    return zip(rows, labels, strict=True)


def _rows(path: Path, name: str, frames: np.ndarray, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    if frames.ndim == 3:
        lengths = arrays.get(LENGTHS, np.full(len(frames), frames.shape[1]))
        if len(lengths) != len(frames) or (lengths > frames.shape[1]).any() or (lengths < 0).any():
            raise UserError(f"{path}: {LENGTHS!r} does not fit {name!r} of shape {frames.shape}")
        return [row[:length] for row, length in zip(frames, lengths.tolist(), strict=True)]
    if frames.ndim == 2 and OFFSETS in arrays:
        offsets = arrays[OFFSETS].astype(np.int64)
        if offsets[0] != 0 or offsets[-1] != len(frames) or (np.diff(offsets) < 0).any():
            raise UserError(f"{path}: {OFFSETS!r} must increase from 0 to {len(frames):,}, the rows of {name!r}")
        return np.split(frames, offsets[1:-1])
    raise UserError(
        f"{path}: {name!r} has shape {frames.shape}; give (rows, time, features), or (all, features) with {OFFSETS!r}"
    )


def _numbers(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.number):
        raise UserError(f"{path}: {name!r} holds {array.dtype}, not numbers")
    array = array.astype(np.float32)
    if (bad := np.argwhere(~np.isfinite(array))).size:
        count, place = len(bad), ", ".join(map(str, bad[0]))
        raise UserError(
            f"{path}: {count:,} values of {name!r} are not finite, the first at [{place}]; fix or remove them"
        )
    return array


def _read_table(path: Path, label: str | None, row: str) -> Iterator[tuple[np.ndarray, str]]:
    """Lines of one sequence are contiguous and in time order."""
    done: set[str] = set()
    for name, lines in groupby(_table_rows(path), key=lambda line: _cell(path, line, row, "row")):
        steps = list(lines)
        if name in done:
            raise UserError(f"{path}:{steps[0][0]}: sequence {name!r} is interrupted; sort the lines by {row!r}")
        done.add(name)
        named = {""} if label is None else {_cell(path, step, label, "label") for step in steps}
        if len(named) > 1:
            raise UserError(f"{path}:{steps[0][0]}: sequence {name!r} has several labels: {', '.join(sorted(named))}")
        frames = [[_number(path, n, key, value) for key, value in step.items() if key not in (row, label)]
                  for n, step in steps]  # fmt: skip
        yield np.array(frames, np.float32), named.pop()


def _table_rows(path: Path) -> Iterator[tuple[int, Json]]:
    if suffix(path) != ".parquet":
        return READERS[suffix(path)](path)
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path}: parquet needs the pyarrow package: pip install 'seqloom[data]'") from None
    table = parquet.ParquetFile(path)
    batches = (row for batch in table.iter_batches() for row in batch.to_pylist())
    return enumerate(batches, 1)


def _cell(path: Path, line: tuple[int, Json], column: str, role: str) -> str:
    number, row = line
    if column not in row:
        raise UserError(f"{path}:{number}: no column {column!r}; available: {', '.join(row)}; {flag(role)}")
    return str(row[column])


def _number(path: Path, line: int, column: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{path}:{line}: {column}={value!r} is not a number") from None
    if not math.isfinite(number):
        raise UserError(f"{path}:{line}: {column}={value!r} is not finite; fix it or remove the sequence")
    return number
