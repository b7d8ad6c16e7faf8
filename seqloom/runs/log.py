"""Logs: one JSON object per line, appended; an incomplete last line is dropped by the next read or append."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import RunError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.runs.durable import (
    CHUNK,
    Damaged,
    reason,
    shown,
    sync_folder,
    write_all,
    writing,
)
from seqloom.runs.regular import open_regular, read_regular

_MOST = 1 << 30  # bytes; a million steps take a fifth of it


def append_line(path: Path, entry: Mapping[str, Any]) -> None:
    """Append one JSON object. Not fsynced: see `sync_file`."""
    line = to_json(entry) + b"\n"
    with writing(path, lambda: len(line)):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            end = _end_of_whole_lines(fd)
            try:
                write_all(fd, memoryview(line))
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, end)
                raise
        finally:
            os.close(fd)


def read_lines(path: Path) -> list[Json]:
    """The objects of a log, without an incomplete last line; a missing log is empty."""
    try:
        *lines, _ = read_regular(path, _MOST).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {shown(path)}: {reason(error)}") from error
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            entries.append(entry)
        elif number < len(lines):
            raise Damaged(f"{shown(path)}:{number}: not a JSON object", "delete this line, which is only a log")
    return entries


def digest(path: Path) -> str | None:
    """SHA-256 of a file; None if there is none, or it cannot be read, or is larger than a log can be."""
    try:
        with open_regular(path) as file:
            fits = os.fstat(file.fileno()).st_size <= _MOST
            return hashlib.file_digest(file, "sha256").hexdigest() if fits else None
    except OSError:
        return None


def sync_file(path: Path) -> None:
    """Flush to disk, so that everything appended so far survives a power cut."""
    with writing(path), suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        sync_folder(path.parent)


def _end_of_whole_lines(fd: int) -> int:
    """Truncate what a killed process left after the last newline; returns the new size."""
    end = size = os.fstat(fd).st_size
    while end and os.pread(fd, 1, end - 1) != b"\n":
        start = max(0, end - CHUNK)
        end = start + os.pread(fd, end - start, start).rfind(b"\n") + 1
    if end < size:
        os.ftruncate(fd, end)
    return end
