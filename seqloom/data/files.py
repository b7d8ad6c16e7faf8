"""Reading text files, compressed or not, by blocks or lines; every way they can be invalid is reported.

Text is UTF-8, unless a byte order mark or the user (`declare`) says otherwise; it is then turned into UTF-8 block by
block, so that everything after `read_utf8` knows of no other encoding.
"""

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
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, short
from seqloom.data.encodings import BOMS, find_codec, is_surely_utf8, recognise_wide
from seqloom.data.refusals import check_name, not_as_declared, not_text, not_utf8

BLOCK = 1 << 18
_PATH = 300  # characters of a path in a message
LONGEST_LINE = 1 << 28  # bytes; a line is held in memory
COMPRESSED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".xz": partial(lzma.LZMAFile, format=lzma.FORMAT_XZ),  # else NULs are read as empty files of an older format
    ".bz2": bz2.BZ2File,
}

_declared: dict[str, tuple[str, str] | None] = {}  # encodings by absolute path: as typed, and Python's name


def check_file(path: Path) -> None:
    """Refuse what is missing, unreadable, or can be read only once (a pipe)."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            _open(path).close()
    except OSError as error:
        raise UserError(f"{short(path, _PATH)}: {_reason(error, path)}") from None
    except ValueError:
        raise UserError(f"{quoted(str(path))}: not a valid file name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: not a regular file; it is read more than once, so save it to a file first")


def _open(path: Path) -> io.FileIO:
    """Some files that the system makes while they are read, such as /proc/kmsg, would wait for ever."""
    return io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def suffix(path: Path) -> str:
    """The kind of file: `.jsonl` for both a.jsonl and a.jsonl.gz."""
    kind = path.suffix.lower()
    return Path(path.stem).suffix.lower() if kind in COMPRESSED else kind


def read_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The (decompressed) content, unchanged."""
    check_file(path)
    opener = COMPRESSED.get(path.suffix.lower(), _open)
    try:
        with opener(path) as file:
            while block := file.read(size):
                yield block
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, ValueError) as error:
        raise UserError(f"{path}: damaged compressed file ({error}); download or compress it again") from None
    except OSError as error:
        if error.errno is None:  # bz2's own
            raise UserError(f"{path}: damaged compressed file ({error}); download or compress it again") from None
        raise UserError(f"{path}: {_reason(error, path)}") from None


def declare(spec: str | None, encoding: object) -> None:
    """Say in which encoding a file is, all files of a folder are, or two parallel files are; None: to be found from it.

    Kept here by path, rather than passed on, because data is read again and again, by some forty functions that have a
    path and no options. It is said wherever data is named together with its options, and the latest counts.
    """
    codec = find_codec(str(encoding)) if encoding else None  # -o gives 1252 as a number
    if spec is None or spec.startswith("sample:"):
        return
    for name in filter(None, {spec, *map(str.strip, spec.split(","))}):
        place = os.path.abspath(name)
        for known in [known for known in _declared if known.startswith(place + os.sep)]:
            del _declared[known]
        _declared[place] = (str(encoding), codec) if codec else None


def declared(path: Path) -> tuple[str, str] | None:
    """The encoding that was declared, as typed, and Python's name of it."""
    whole = Path(os.path.abspath(path))
    return next((_declared[name] for name in map(str, (whole, *whole.parents)) if name in _declared), None)


def read_utf8(path: Path, size: int | None = None) -> Iterator[bytes]:
    """The content in UTF-8, whatever its encoding; what is not text is refused. A UTF-8 file is unchanged, and not
    checked to be valid."""
    blocks = read_blocks(path, size) if size else read_blocks(path)
    first = next(blocks, b"")
    check_name(path, first)
    mark = next((bom for bom in BOMS if first.startswith(bom)), b"")
    name, codec = (BOMS[mark], BOMS[mark]) if mark else declared(path) or ("utf-8", "utf-8")
    if codec != "utf-8" and (mark or not is_surely_utf8(first)):  # beside GBK files there may be one in UTF-8
        yield from _in_utf8(path, chain([first[len(mark) :]], blocks), name, codec)
        return
    offset, lines = 0, 1
    for block in chain([first] if first else [], blocks):
        if (at := block.find(b"\0")) >= 0:
            raise not_text(path, first, offset + at, lines + block.count(b"\n", 0, at))
        yield block
        offset, lines = offset + len(block), lines + block.count(b"\n")


def _in_utf8(path: Path, blocks: Iterator[bytes], name: str, codec: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(codec)()
    lines, text = 1, ""
    try:
        for block in chain(blocks, [b""]):
            text = decoder.decode(block, final=not block)
            if "\0" in text:
                before = text.partition("\0")[0]
                raise not_as_declared(path, lines + _line_ends(before), name, codec, read_blocks(path))
            lines += _line_ends(text)
            if data := text.encode():
                yield data
    except UnicodeError as error:  # a plain one if UTF-16 lacks its byte order mark
        read = bytes(error.object[: error.start]) if isinstance(error, UnicodeDecodeError) else b""
        before = read.decode(codec, "ignore")
        raise not_as_declared(path, lines + _line_ends(before), name, codec, read_blocks(path)) from None


def _line_ends(text: str) -> int:
    return text.count("\n") or text.count("\r")


def read_text(path: Path) -> Iterator[str]:
    """The content as text, without a byte order mark and with every line ending as \\n."""
    utf8 = codecs.getincrementaldecoder("utf-8")()
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    first = True
    try:
        for block in read_utf8(path):
            text = decoder.decode(_without_bom(block) if first else block)
            first = False
            if text:
                yield text
        if text := decoder.decode(b"", final=True):
            yield text
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def read_lines(path: Path) -> Iterator[str]:
    """Line by line, line endings kept, for formats whose errors name a line. In a file whose lines end with \\r only,
    as on early Macs, they end with \\n."""
    pending: list[bytes] = []  # pieces of a line longer than a block
    number, mac, length = 0, False, 0
    for block in read_utf8(path):
        if not number:
            number, block = 1, _without_bom(block)
            mac = b"\r" in block[:-1] and b"\n" not in block
        if (length := length + len(block)) > LONGEST_LINE and b"\n" not in block:
            raise UserError(f"{path}:{number}: a line of more than {LONGEST_LINE:,} bytes; split it into lines")
        first, *lines = (block.replace(b"\r", b"\n") if mac else block).split(b"\n")
        pending.append(first)
        for line in lines:
            yield _decode_line(path, number, b"".join(pending)) + "\n"
            pending, length = [line], len(line)
            number += 1
    if rest := b"".join(pending):
        yield _decode_line(path, number, rest)


def looks_binary(path: Path) -> bool:
    """Whether it is no text in any encoding."""
    block = next(read_blocks(path), b"")
    return b"\0" in block and not (block.startswith(tuple(BOMS)) or recognise_wide(block))


def _without_bom(block: bytes) -> bytes:
    return block.removeprefix(codecs.BOM_UTF8)


def _reason(error: OSError, path: Path) -> str:
    if not isinstance(error, FileNotFoundError):
        return error.strerror or str(error)
    if path.is_symlink():
        return "a link to a file that is not there"
    pattern = any(mark in path.name for mark in "*?[")
    return "no such file" + ("; patterns are not expanded, give one file or a folder" if pattern else "")


def _decode_line(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        place = f"(byte 0x{line[error.start]:02x} at column {column})"
        raise not_utf8(path, number, place, read_blocks(path)) from None


def _not_utf8(path: Path) -> UserError:
    """The error with its line, found by a second pass: counting lines in the first would slow down every good file."""
    try:
        for _ in read_lines(path):
            pass
    except UserError as error:
        return error
    return UserError(f"{path}: the file has changed while it was read")
