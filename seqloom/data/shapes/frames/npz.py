"""Labelled sequences in an NPZ file: which arrays there must be, of which types and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, some
from seqloom.data.numbers import LARGEST_SINGLE
from seqloom.data.role_names import flag
from seqloom.data.shapes.frames.arrays import declared_arrays, read_arrays

FRAMES, OFFSETS, LENGTHS = "frames", "offsets", "lengths"

_LABELS = "USiubf"  # kinds of arrays: texts, whole numbers, true and false, numbers
_NUMBERS = "iuf"


def read_npz(path: Path, label: str | None, column: str) -> Iterator[tuple[np.ndarray, str]]:
    """Each sequence (time, features) and its label; empty if `label` is None."""
    there = declared_arrays(path)
    name = column if column in there else FRAMES
    if name not in there or (label is not None and label not in there):
        missing, role = (name, "frames") if name not in there else (label, "label")
        raise UserError(f"{path}: no array {quoted(missing)}; available: {some(there)}; {flag(role)}")
    if label in (name, OFFSETS, LENGTHS):
        raise UserError(
            f"{path}: the label cannot be {quoted(label)}, which says what the sequences are; {flag('label')}"
        )
    arrays = read_arrays(path, [name, OFFSETS, LENGTHS, *([label] if label is not None else [])])
    rows = _rows(path, name, _measured(path, name, arrays[name]), arrays)
    labels = [""] * len(rows) if label is None else _labels(path, label, arrays[label])
    if len(labels) != len(rows):
        raise UserError(
            f"{path}: {len(rows):,} sequences in {quoted(name)}, but {len(labels):,} labels in {quoted(label)}"
        )
    return zip(rows, labels, strict=True)


def _rows(path: Path, name: str, frames: np.ndarray, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    if frames.ndim == 3:
        if OFFSETS in arrays:
            raise UserError(
                f"{path}: {quoted(name)} of shape {frames.shape} has {OFFSETS!r}, which are for (all, features)"
            )
        whole = np.full(len(frames), frames.shape[1])
        lengths = _whole_numbers(path, LENGTHS, arrays[LENGTHS]) if LENGTHS in arrays else whole
        if len(lengths) != len(frames) or (lengths > frames.shape[1]).any() or (lengths < 0).any():
            fitting = f"give {len(frames):,} numbers from 0 to {frames.shape[1]:,}"
            raise UserError(f"{path}: {LENGTHS!r} does not fit {quoted(name)} of shape {frames.shape}; {fitting}")
        return [row[:length] for row, length in zip(frames, lengths.tolist(), strict=True)]
    if frames.ndim == 2 and OFFSETS in arrays:
        offsets = _whole_numbers(path, OFFSETS, arrays[OFFSETS])
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(frames) or (offsets[1:] < offsets[:-1]).any():
            raise UserError(f"{path}: {OFFSETS!r} must increase from 0 to {len(frames):,}, the rows of {quoted(name)}")
        return np.split(frames, offsets[1:-1].astype(np.int64)) if len(offsets) > 1 else []
    raise UserError(
        f"{path}: {name!r} has shape {frames.shape}; give (rows, time, features), or (all, features) with {OFFSETS!r}"
    )


def _whole_numbers(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UserError(
            f"{path}: {quoted(name)} holds {array.dtype} of shape {array.shape}; give whole numbers in one dimension"
        )
    return array


def _measured(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in _NUMBERS:
        wanted = "real numbers" if array.dtype.kind == "c" else "numbers"
        raise UserError(f"{path}: {quoted(name)} holds {array.dtype}, not {wanted}")
    if array.ndim in (2, 3) and not array.shape[-1] and array.size == 0 and len(array):
        raise UserError(f"{path}: {quoted(name)} has shape {array.shape}: no features")
    if array.size and not (array.min() >= -LARGEST_SINGLE and array.max() <= LARGEST_SINGLE):  # NaN is neither
        infinite = not np.isfinite(array).all()
        bad = np.argwhere(~np.isfinite(array) if infinite else np.abs(array) > LARGEST_SINGLE)
        what = "not finite" if infinite else f"beyond {LARGEST_SINGLE:g}, too large for single precision"
        place = ", ".join(map(str, bad[0]))
        raise UserError(
            f"{path}: {len(bad):,} values of {quoted(name)} are {what}, the first at [{place}]; fix or remove them"
        )
    return array.astype(np.float32, copy=False)


def as_list(path: Path, name: str, array: np.ndarray) -> list[Any]:
    """Texts and numbers of Python; bytes are texts."""
    try:
        values = [value.decode() if isinstance(value, bytes) else value for value in array.tolist()]
        "".join(value for value in values if isinstance(value, str)).encode()
    except (ValueError, SystemError):  # numpy keeps any 32 bits as a character
        raise UserError(f"{path}: {quoted(name)} holds texts that are not valid Unicode; write it again") from None
    return values


def _labels(path: Path, name: str, array: np.ndarray) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in _LABELS:
        given = f"{array.dtype} of shape {array.shape}"
        raise UserError(f"{path}: {quoted(name)} holds {given}; give one label for each sequence: texts or numbers")
    values = [str(value) for value in as_list(path, name, array)]
    for n, value in enumerate(values):
        if not value.strip() or value == "nan":
            raise UserError(
                f"{path}: sequence {n + 1} has no label in {quoted(name)}; give one, or leave the sequence out"
            )
    return values
