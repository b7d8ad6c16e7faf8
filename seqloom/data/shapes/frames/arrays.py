"""NPZ files: zip archives of plain arrays. The header of every array is checked before anything is read of it: no code
to run, no size beyond what the archive holds or the memory takes."""

from __future__ import annotations

import ast
import errno
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.memory import require
from seqloom.core.quoting import quoted, short
from seqloom.data.files import check_file

_MOST = 10_000  # arrays
_LONGEST = 10_000  # bytes of a header
_DIMENSIONS = 8
_EXPANDED, _LARGE = 200, 1 << 28  # times its size in the archive that an array may take, if it takes so many bytes
_COPIES = 3  # of an array in memory: as read, in single precision, and while it is checked
_FAULTS = (
    ValueError, TypeError, KeyError, IndexError, EOFError, SyntaxError, RecursionError, OverflowError,
    RuntimeError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
)  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """What the header of an array says of it."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


def declared_arrays(path: Path) -> dict[str, Declared]:
    """The arrays of a file, unread."""
    with _opened(path) as archive:
        return _declared(path, archive)


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those arrays of these names that are there."""
    with _opened(path) as archive:
        there = _declared(path, archive)
        wanted = [name for name in names if name in there]
        size = sum(there[name].bytes for name in wanted)
        require(_COPIES * size, f"{path}: reading {' and '.join(map(quoted, wanted))}", "split the file")
        found = {}
        for name in wanted:
            with archive.open(f"{name}.npy") as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
        return found


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (OSError, *_FAULTS) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # a place that is not in the file
            raise UserError(f"{path}: {error.strerror}") from None
        reason = short(error, 100) or type(error).__name__
        raise UserError(
            f"{path}: not an NPZ file of plain arrays, or damaged ({reason}); write it with numpy.savez"
        ) from None


def _declared(path: Path, archive: zipfile.ZipFile) -> dict[str, Declared]:
    entries = archive.infolist()
    if len(entries) > _MOST:
        raise UserError(f"{path}: {len(entries):,} arrays; at most {_MOST:,} are read")
    found: dict[str, Declared] = {}
    for entry in entries:
        if entry.file_size > max(_LARGE, _EXPANDED * entry.compress_size):
            sizes = f"{entry.compress_size:,} bytes that expand to {entry.file_size:,}"
            raise UserError(f"{path}: {quoted(entry.filename)} has {sizes}; store it uncompressed, with numpy.savez")
        name = entry.filename.removesuffix(".npy")
        if name == entry.filename:
            continue  # something else than an array
        if name in found:
            raise UserError(f"{path}: two arrays are named {quoted(name)}; write it again")
        with archive.open(entry) as file:
            found[name], begins = _header(file)
        if found[name].dtype.hasobject:
            raise UserError(f"{path}: {quoted(name)} holds Python objects; give an array of numbers or of texts")
        if begins + found[name].bytes != entry.file_size:
            sizes = f"said to be {found[name]}, which does not fit its {entry.file_size:,} bytes"
            raise UserError(f"{path}: {quoted(name)} is {sizes}; the file is damaged, write it again")
    return found


def _header(file: IO[bytes]) -> tuple[Declared, int]:
    """The type and shape, and the number of bytes before the data."""
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    size = int.from_bytes(file.read(width), "little")
    if size > _LONGEST:
        raise ValueError(f"a header of {size:,} bytes")
    text = file.read(size).decode("latin1" if version < (3, 0) else "utf-8")
    try:
        found = ast.literal_eval(text) if text.count("(") + text.count("[") < 100 else None
    except (ValueError, SyntaxError):  # which names objects of Python's parser
        found = None
    if not isinstance(found, dict) or not isinstance(shape := found["shape"], tuple) or len(shape) > _DIMENSIONS:
        raise ValueError("a header that describes no array")
    if not all(type(length) is int and 0 <= length < 2**48 for length in shape):
        raise ValueError(f"a shape of {quoted(shape)}")
    return Declared(np.lib.format.descr_to_dtype(found["descr"]), shape), 6 + 2 + width + size
