"""Regular files, read whole or refused at once: a pipe would block, and a device never ends."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Open for reading."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most this many bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return data
