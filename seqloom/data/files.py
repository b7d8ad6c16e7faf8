"""Reading text files, compressed or not, by blocks or lines; every way they can be invalid is reported."""

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
WIDE_BOMS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def check_file(path: Path) -> None:
    """Refuse what is missing, unreadable, or can be read only once (a pipe)."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            io.FileIO(path).close()
    except OSError as error:
        raise UserError(f"{path}: {_reason(error)}") from None
    except ValueError:
        raise UserError(f"{str(path)!r}: not a valid file name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: not a regular file; it is read more than once, so save it to a file first")


def suffix(path: Path) -> str:
    """The kind of file: `.jsonl` for both a.jsonl and a.jsonl.gz."""
    kind = path.suffix.lower()
    return Path(path.stem).suffix.lower() if kind in COMPRESSED else kind


def read_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The (decompressed) content, unchanged."""
    opener = COMPRESSED.get(path.suffix.lower(), io.FileIO)
    try:
        with opener(path) as file:
            while block := file.read(size):
                yield block
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise UserError(f"{path}: damaged compressed file ({error}); download or compress it again") from None
    except OSError as error:
        raise UserError(f"{path}: {_reason(error)}") from None


def read_text(path: Path) -> Iterator[str]:
    """The content as text, without a byte order mark and with every line ending as \\n."""
    utf8 = codecs.getincrementaldecoder("utf-8")()
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    offset = 0
    try:
        for block in read_blocks(path):
            check_block(path, block, offset)
            text = decoder.decode(_without_bom(block) if offset == 0 else block)
            offset += len(block)
            if text:
                yield text
        if text := decoder.decode(b"", final=True):
            yield text
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def read_lines(path: Path) -> Iterator[str]:
    """Line by line, line endings kept, for formats whose errors name a line."""
    pending: list[bytes] = []  # pieces of a line longer than a block
    number, offset = 1, 0
    for block in read_blocks(path):
        check_block(path, block, offset)
        first, *lines = (_without_bom(block) if offset == 0 else block).split(b"\n")
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
        for bom, name in WIDE_BOMS.items():
            if block.startswith(bom):
                way_out = f"iconv -f {name.lower()} -t utf-8 {path} > utf8.txt"
                raise UserError(f"{path}: {name} text; save it as UTF-8, for example: {way_out}")
    if (at := block.find(b"\0")) >= 0:
        raise UserError(f"{path}: a binary file (NUL byte at offset {offset + at}); give a text file in UTF-8")


def looks_binary(path: Path) -> bool:
    block = next(read_blocks(path), b"")
    return b"\0" in block and not block.startswith(tuple(WIDE_BOMS))


def _without_bom(block: bytes) -> bytes:
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
    """The error with its line, found by a second pass: counting lines in the first would slow down every good file."""
    try:
        for _ in read_lines(path):
            pass
    except UserError as error:
        return error
    return UserError(f"{path}: not UTF-8; save it as UTF-8, or iconv -f latin1 -t utf-8")
