"""TokenStream: a text as token ids in a memory-mapped file, tokenised once and cached by content.

File layout: a header (JSON, padded to a page), the ids, the count of each id (int64).
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.data.text import Source

PAGE = 4096
FORMAT = 1  # raised when the layout or the reading of texts changes, so that old entries are rebuilt
AROUND = 1 << 20  # bytes the OS may map around a single read
KEPT = 1 << 26  # bytes mapped before pages are released, so that memory does not grow with the file
BUFFER = 1 << 18  # ids per write
ABANDONED = 24 * 3600.0  # seconds after which a temporary file is considered abandoned


class Encodes(Protocol):
    """The interface of a tokenizer that is needed here."""

    size: int
    eos: int
    hash: str

    def encode_many(self, texts: Iterable[str]) -> Iterator[np.ndarray]: ...


class TokenStream:
    def __init__(self, ids: np.ndarray, bytes: int, hash: str, counts: np.ndarray, file: mmap.mmap | None = None):
        self.bytes = bytes  # of the original text, in UTF-8
        self.hash = hash
        self.counts = counts  # how often each id occurs
        self._ids, self._file = ids, file
        self._mapped = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def tokens(self) -> int:
        return len(self)

    def __getitem__(self, s: slice) -> np.ndarray:
        """An int64 copy of the slice."""
        part = self._ids[s]
        copy = part.astype(np.int64)
        if self._file is not None:
            self._mapped += max(part.nbytes, AROUND)
            if self._mapped > KEPT and hasattr(mmap, "MADV_DONTNEED"):
                self._file.madvise(mmap.MADV_DONTNEED)
                self._mapped = 0
        return copy

    def head(self, length: int) -> TokenStream:
        """The first `length` ids, in memory, with their share of the bytes."""
        if length >= len(self):
            return self
        return TokenStream.of(self[:length], self.bytes * length // len(self), len(self.counts))

    @classmethod
    def of(cls, ids: np.ndarray, bytes: int, size: int) -> TokenStream:
        """An in-memory stream, for small data."""
        ids = np.asarray(ids, np.int64)
        small = ids.astype(id_type(size))
        hash = hashlib.sha256(f"{size} {bytes} ".encode() + small.tobytes()).hexdigest()
        return cls(small, bytes, hash, np.bincount(ids, minlength=size))

    @classmethod
    def open(cls, path: Path) -> TokenStream | None:
        """The stream in a file; None if the file is missing or incomplete."""
        try:
            with open(path, "rb") as file:
                header = json.loads(file.read(PAGE))
                if os.fstat(file.fileno()).st_size != _file_size(header) or header["format"] != FORMAT:
                    return None
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if hasattr(mmap, "MADV_RANDOM"):
            mapped.madvise(mmap.MADV_RANDOM)  # no read-ahead: training reads at random
        ids = np.frombuffer(mapped, id_type(header["size"]), header["length"], PAGE)
        counts = np.frombuffer(mapped, "<i8", header["size"], len(mapped) - 8 * header["size"]).astype(np.int64)
        return cls(ids, header["bytes"], header["hash"], counts, mapped)


def id_type(size: int) -> np.dtype:
    """The smallest type that holds every id of a vocabulary of this size."""
    return np.dtype("u1" if size <= 1 << 8 else "<u2" if size <= 1 << 16 else "<u4")


def default_cache() -> Path:
    if own := os.environ.get("SEQLOOM_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"


def prepare(
    source: Source, tokenizer: Encodes, cache: Path | None = None, progress: Callable[[int], None] | None = None
) -> TokenStream:
    """The text as ids, with an end-of-text id after each document; from the cache if prepared before.

    `progress` is called with the bytes of text done so far.
    """
    folder = Path(cache or default_cache())
    hash = hashlib.sha256(f"{FORMAT} {source.hash} {tokenizer.hash}".encode()).hexdigest()
    path = folder / f"{hash[:32]}.ids"
    if (stream := TokenStream.open(path)) is not None and stream.hash == hash:
        return stream
    header = {"format": FORMAT, "size": tokenizer.size, "bytes": source.bytes, "hash": hash}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        _write(path, header, tokenizer.size, _encode(source, tokenizer, progress))
    except OSError as error:
        way_out = "free some space, or set SEQLOOM_CACHE to another folder"
        raise RunError(f"{folder}: cannot store the tokenised text ({error.strerror}); {way_out}") from None
    stream = TokenStream.open(path)
    if stream is None:
        raise RunError(f"{path}: changed while it was being written; run again")
    return stream


def _encode(source: Source, tokenizer: Encodes, progress: Callable[[int], None] | None) -> Iterator[np.ndarray]:
    waiting: deque[tuple[int, bool]] = deque()  # (bytes, ends a document) of texts in the tokenizer
    end = np.array([tokenizer.eos])

    def texts() -> Iterator[str]:
        for text, ends in source.marked():
            waiting.append((len(text) if text.isascii() else len(text.encode()), ends))
            yield text

    done = 0
    for ids in tokenizer.encode_many(texts()):
        length, ends = waiting.popleft()
        yield ids
        if ends:
            yield end
        done += length
        if progress is not None:
            progress(done)


def _write(path: Path, header: Json, size: int, encoded: Iterable[np.ndarray]) -> None:
    """All or nothing: the temporary file is renamed only when it is complete and on disk."""
    handle, name = tempfile.mkstemp(prefix=path.stem, suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.seek(PAGE)
            length, counts = _write_ids(file, size, encoded)
            file.seek(-file.tell() % 8, os.SEEK_CUR)
            file.write(counts.astype("<i8").tobytes())
            file.seek(0)
            file.write(json.dumps(header | {"length": length}).encode().ljust(PAGE))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_ids(file: IO[bytes], size: int, encoded: Iterable[np.ndarray]) -> tuple[int, np.ndarray]:
    kind, counts = id_type(size), np.zeros(size, np.int64)
    length = 0
    for ids in _gather(encoded):
        counts += np.bincount(ids, minlength=size)
        file.write(ids.astype(kind).data)
        length += len(ids)
    return length, counts


def _gather(arrays: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Arrays joined until they are worth a write: documents may be short."""
    pending: list[np.ndarray] = []
    length = 0
    for array in arrays:
        pending.append(array)
        length += len(array)
        if length >= BUFFER:
            yield np.concatenate(pending) if len(pending) > 1 else array
            pending, length = [], 0
    if length:
        yield np.concatenate(pending)


def _file_size(header: Json) -> int:
    ids = header["length"] * id_type(header["size"]).itemsize
    return PAGE + ids + -(PAGE + ids) % 8 + 8 * header["size"]


def _sweep(folder: Path) -> None:
    """Remove temporary files that killed processes left behind."""
    for path in folder.glob("*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
