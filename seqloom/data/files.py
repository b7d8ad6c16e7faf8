"""Reading text files, compressed or not: block by block, line by line, and every way they can be wrong."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError

BLOCK = 1 << 18
COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile, ".bz2": bz2.BZ2File}
WIDE_MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def check_file(path: Path) -> None:
    """Refuse what is missing, forbidden, or can be read only once (a pipe)."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            io.FileIO(path).close()
    except OSError as error:
        raise UserError(f"{path}: {_reason(error)}") from None
    except ValueError:
        raise UserError(f"{str(path)!r}: not a file name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: not a regular file; it is read more than once, so save it to a file first")


def suffix(path: Path) -> str:
    """What kind of file it is: `.jsonl` for both a.jsonl and a.jsonl.gz."""
    kind = path.suffix.lower()
    return Path(path.stem).suffix.lower() if kind in COMPRESSED else kind


def read_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The (decompressed) content as it stands."""
    opener = COMPRESSED.get(path.suffix.lower(), io.FileIO)
    try:
        with opener(path) as file:
            while block := file.read(size):
                yield block
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise UserError(f"{path}: damaged compressed file ({error}); fetch or compress it again") from None
    except OSError as error:
        raise UserError(f"{path}: {_reason(error)}") from None


def read_text(path: Path) -> Iterator[str]:
    """The content as text: a byte order mark is dropped, every line end becomes \\n."""
    utf8 = codecs.getincrementaldecoder("utf-8")()
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    offset = 0
    try:
        for block in read_blocks(path):
            check_block(path, block, offset)
            text = decoder.decode(_without_mark(block) if offset == 0 else block)
            offset += len(block)
            if text:
                yield text
        if text := decoder.decode(b"", final=True):
            yield text
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def read_lines(path: Path) -> Iterator[str]:
    """Line by line, line ends kept, for formats whose errors name a line."""
    pending: list[bytes] = []  # pieces of a line that is longer than a block
    number, offset = 1, 0
    for block in read_blocks(path):
        check_block(path, block, offset)
        first, *lines = (_without_mark(block) if offset == 0 else block).split(b"\n")
        offset += len(block)
        pending.append(first)
        for line in lines:
            yield _decode_line(path, number, b"".join(pending)) + "\n"
            pending = [line]
            number += 1
    if rest := b"".join(pending):
        yield _decode_line(path, number, rest)


def check_block(path: Path, block: bytes, offset: int) -> None:
    if offset == 0:
        for mark, name in WIDE_MARKS.items():
            if block.startswith(mark):
                way_out = f"iconv -f {name.lower()} -t utf-8 {path} > utf8.txt"
                raise UserError(f"{path}: {name} text; save it as UTF-8, for example: {way_out}")
    if (at := block.find(b"\0")) >= 0:
        raise UserError(f"{path}: a binary file (NUL byte at offset {offset + at}); a text file in UTF-8 is wanted")


def looks_binary(path: Path) -> bool:
    block = next(read_blocks(path), b"")
    return b"\0" in block and not block.startswith(tuple(WIDE_MARKS))


def _without_mark(block: bytes) -> bytes:
    return block.removeprefix(codecs.BOM_UTF8)


def _reason(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error))


def _decode_line(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise UserError(
            f"{path}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at column {column}); "
            "save it as UTF-8, or iconv -f latin1 -t utf-8"
        ) from None


def _not_utf8(path: Path) -> UserError:
    """Looked for only when it is known to be there: counting lines on the way would cost every good file."""
    try:
        for _ in read_lines(path):
            pass
    except UserError as error:
        return error
    return UserError(f"{path}: not UTF-8; save it as UTF-8, or iconv -f latin1 -t utf-8")
