"""Data in memory, written to a file named after its content."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from seqloom.core.errors import RunError, UserError, check_encodable
from seqloom.data.memory.forms import Columns, Data, Layout, measurements, to_columns
from seqloom.data.stream import default_cache

_KEPT = 30 * 24 * 3600.0  # seconds since data was last handed over


@dataclass(frozen=True)
class Stored:
    """A file, and the settings (by path) with which it is read."""

    spec: str
    settings: Mapping[str, str] = field(default_factory=dict)


def title(spec: str) -> str:
    """What a person should read instead of the path."""
    return "data in memory" if Path(spec).parent == _folder() else spec


def store(data: Data, layout: Layout) -> Stored:
    """A list of texts; a list of pairs, or two sequences `(X, y)`; a list of dicts; a dict of columns; a pandas or
    polars data frame; a Hugging Face dataset; numbers for forecasting: an array (time,) or (time, variables), or a
    pandas series; sequences of measurements: a list of arrays (time, features).
    """
    found = None if layout.series else measurements(data)
    if found is not None:
        label = layout.parts[1] if len(layout.parts) > 1 else "label"
        return Stored(_written(".npz", [_npz(*found, label)]))
    columns, settings = to_columns(data, layout)
    return Stored(_written(".jsonl", _lines(columns)), settings)


def _lines(columns: Columns) -> Iterator[bytes]:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise UserError(f"data: columns of different lengths: {shown}")
    if not any(lengths.values()):
        raise UserError("data: empty; there are no rows")
    for n, cells in enumerate(zip(*columns.values(), strict=True)):
        row = {name: _plain(name, cell) for name, cell in zip(columns, cells, strict=True)}
        line = json.dumps(row, ensure_ascii=False)
        check_encodable(f"data[{n}]", line)
        yield line.encode() + b"\n"


def _plain(name: str, value: Any) -> Any:
    """As JSON: missing values as null, times as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(name, item) for key, item in value.items()}
    if isinstance(value, bytes):
        raise UserError(f"data: {name}: bytes; decode them to text first")
    if isinstance(value, np.generic):
        return _plain(name, value.item())
    text = str(value)
    return None if text in ("NaT", "<NA>") else text


def _npz(frames: list[np.ndarray], labels: list[Any] | None, label: str) -> bytes:
    if len({array.shape[1] for array in frames}) > 1:
        raise UserError("data: the sequences have different numbers of features")
    arrays = {"frames": np.concatenate(frames), "offsets": np.cumsum([0, *map(len, frames)])}
    if labels is not None:
        arrays[label] = np.array([str(name) for name in labels])
    content = io.BytesIO()
    np.savez(content, **cast("Any", arrays))  # its zip entries carry a fixed date, so equal arrays give equal bytes
    return content.getvalue()


def _written(ending: str, pieces: Iterable[bytes]) -> str:
    """The path of a file with this content; complete whenever it is there."""
    folder, digest = _folder(), hashlib.sha256()
    name = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        handle, name = tempfile.mkstemp(suffix=".tmp", dir=folder)
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        path = Path(folder / f"{digest.hexdigest()[:24]}{ending}")
        os.replace(name, path)
    except OSError as error:
        way_out = "free some space, or set SEQLOOM_CACHE to another folder"
        raise RunError(f"{folder}: cannot store the data ({error.strerror}); {way_out}") from None
    finally:
        with suppress(OSError):
            os.unlink(name)
    return str(path)


def _sweep(folder: Path) -> None:
    """Remove what has not been used for long; whoever hands over the same data again gets the same file again."""
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT:
                path.unlink()


def _folder() -> Path:
    return default_cache() / "memory"
