"""Source: a text that can be re-read from its beginning, piece by piece, and is never held in memory."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.columns import find_columns
from seqloom.data.files import BLOCK, check_file, looks_binary, read_text, read_utf8, suffix
from seqloom.data.rows import READERS
from seqloom.data.samples import find_sample

Marked = Iterator[tuple[str, bool]]  # pieces of text, True where a document ends


class Source:
    """A text, or a sequence of documents."""

    def __init__(self, name: str, read: Callable[[], Marked], documents: bool = False) -> None:
        self.name = name  # what the user typed
        self.documents = documents  # separate texts, each followed by an end-of-text token
        self._read = read

    def marked(self) -> Marked:
        """Pieces in order, each with whether it ends a document."""
        return self._read()

    def pieces(self) -> Iterator[str]:
        """The text in order, in pieces of moderate size that end with a line wherever possible."""
        return (text for text, _ in self.marked())

    @property
    def bytes(self) -> int:
        """Length of the text in UTF-8."""
        return self._measured[0]

    @property
    def hash(self) -> str:
        """SHA-256 of the content."""
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[int, str]:
        return self._measure()

    def _measure(self) -> tuple[int, str]:
        length, digest = 0, hashlib.sha256()
        for text, ends in self.marked():
            data = text.encode()
            length += len(data)
            digest.update(data + b"\0" if ends else data)  # NUL: other document boundaries are other data
        if not length:
            raise UserError(f"{self.name}: contains no text")
        return length, digest.hexdigest()


class _File(Source):
    """A plain text file: its bytes are hashed, in UTF-8, which is several times faster than decoding them."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), lambda: _unmarked(_join(read_text(path))))
        self._path = path

    def _measure(self) -> tuple[int, str]:
        read = dropped = 0
        digest = hashlib.sha256()
        last = b""
        for block in read_utf8(self._path, 4 * BLOCK):
            if not read and block.startswith(codecs.BOM_UTF8):
                dropped += len(codecs.BOM_UTF8)
            dropped += block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
            digest.update(block)
            read += len(block)
            last = block[-1:]
        if read == dropped:
            raise UserError(f"{self.name}: the file is empty")
        return read - dropped, digest.hexdigest()


def open_text(spec: str, column: str = "text") -> Source:
    """A text file (also .gz, .xz, .bz2), a folder of them, JSONL, CSV or TSV with a text column, `sample:NAME`."""
    if spec.startswith("sample:"):
        return _open_sample(spec)
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        return _open_directory(path, column)
    source = _open_file(path, column)
    if next(source.pieces(), None) is None:
        raise UserError(f"{path}: " + ("contains no text" if source.documents else "the file is empty"))
    return source


def _open_file(path: Path, column: str) -> Source:
    if suffix(path) not in READERS:
        return _File(path)
    read = find_columns(path, [column], roles=("text",)) or (lambda: iter(()))
    return Source(str(path), lambda: as_documents(text for _, (text,) in read() if text), documents=True)


def _open_sample(spec: str) -> Source:
    sample = find_sample(spec, "text")
    return Source(spec, lambda: _unmarked(_join(sample.read())))


def _open_directory(folder: Path, column: str) -> Source:
    sources = [_open_file(path, column) for path in _files_under(folder) if not looks_binary(path)]

    def read() -> Marked:
        for source in sources:
            yield from source.marked() if source.documents else _mark_last(source.pieces())

    found = Source(str(folder), read, documents=True)
    if next(found.pieces(), None) is None:
        raise UserError(f"{folder}: no text files in this folder (hidden and binary files are skipped)")
    return found


def _files_under(folder: Path) -> list[Path]:
    """Sorted by path, without hidden files."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in files if not name.startswith(".")]
    paths = sorted((path for path in found if path.is_file()), key=Path.as_posix)
    for path in paths:
        check_file(path)
    return paths


def _join(blocks: Iterable[str], size: int = BLOCK) -> Iterator[str]:
    """Blocks of any length as pieces of about `size` characters.

    A piece ends before the white space at the end of a line, where no tokenizer merges across;
    a line longer than a piece is cut at a space, or anywhere if it has none.
    """
    pending: list[str] = []
    length = 0
    for block in blocks:
        pending.append(block)
        length += len(block)
        if length < size:
            continue
        text = "".join(pending)
        start = 0
        while len(text) - start >= size:
            end = _last_break(text, start, start + 4 * size)
            yield text[start:end]
            start = end
        pending, length = [text[start:]], len(text) - start
    if text := "".join(pending):
        yield text


def _last_break(text: str, start: int, limit: int) -> int:
    for white in "\n", " ":
        if (found := text.rfind(white, start, limit)) > start and (kept := text[start:found].rstrip()):
            return start + len(kept)
    return min(len(text), limit)


def _unmarked(pieces: Iterable[str]) -> Marked:
    return ((piece, False) for piece in pieces)


def _mark_last(pieces: Iterable[str]) -> Marked:
    before: str | None = None
    for piece in pieces:
        if before is not None:
            yield before, False
        before = piece
    if before is not None:
        yield before, True


def as_documents(texts: Iterable[str]) -> Marked:
    """Each text as a separate document, line endings normalised."""
    for text in texts:
        lines = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        yield from _mark_last(_join([lines]))
