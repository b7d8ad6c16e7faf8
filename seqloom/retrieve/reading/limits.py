"""How large a file may be, checked before it is read: one file must not take the memory of all the others."""

from __future__ import annotations

import os
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.files import COMPRESSED, check_file, read_blocks, read_text

LARGEST = 128 << 20  # bytes of a file that becomes one document, or characters of it
LARGEST_TABLE = 1 << 30  # bytes of a table, which is read row by row
LONGEST_LINE = 64 << 20  # bytes of a line of a table


def check_size(path: Path, largest: int = LARGEST) -> None:
    """Refuse a file that is missing, empty or too large, without reading it."""
    check_file(path)
    size = os.stat(path).st_size
    if not size:
        raise UserError(f"{path}: the file is empty")
    if size > largest:
        raise too_large(path, largest)


def too_large(path: Path, largest: int = LARGEST) -> UserError:
    return UserError(f"{path}: larger than {largest >> 20:,} MB, the most that is read; split it into smaller files")


def whole_text(path: Path) -> str:
    """A text file, compressed or not, decoded as everywhere: without a byte order mark, line endings as \\n."""
    check_size(path)
    pieces, length = [], 0
    for piece in read_text(path):
        pieces.append(piece)
        length += len(piece)
        if length > LARGEST:
            raise too_large(path)
    return "".join(pieces)


def check_lines(path: Path) -> None:
    """Refuse a table with a line, or compressed content, that is too large to be read, or that is no text, before a row
    of it is."""
    length = total = 0
    for block in read_blocks(path, 1 << 20):
        first, last = block.find(b"\n"), block.rfind(b"\n")
        length = length + len(block) if first < 0 else max(length + first, len(block) - last)
        total += len(block)
        if length > LONGEST_LINE:
            raise UserError(f"{path}: a line of more than {LONGEST_LINE >> 20} MB; give one row per line")
        length = length if first < 0 else len(block) - last
        if total > LARGEST_TABLE and path.suffix.lower() in COMPRESSED:
            raise too_large(path, LARGEST_TABLE)
    for _ in read_text(path):
        pass
