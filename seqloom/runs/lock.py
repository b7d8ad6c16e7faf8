"""The lock of a run folder: one process writes at a time, and the kernel releases it however that process ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from seqloom.core.errors import RunError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.runs import durable
from seqloom.runs.durable import shown
from seqloom.runs.regular import open_regular


class InUse(RunError):
    """Another process is writing here."""


LOCK = ".lock"  # in every folder that a command has written to
_PATIENCE = 1.0  # seconds to wait for a new holder to write its name
_held: set[int] = set()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock this folder for writing, creating it if needed."""
    durable.make_folder(folder)
    with durable.writing(folder):
        fd = os.open(_lock_file(folder), os.O_RDWR | os.O_CREAT, 0o666)
    _held.add(fd)
    try:
        _acquire(fd, folder)
        yield
    finally:
        if fd in _held:
            _held.discard(fd)
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def in_use(folder: Path) -> bool:
    """Whether a process of this machine has locked this folder. Nothing is locked to find out, which could get in the
    way of a command that starts at this moment: the kernel is asked, or where it does not tell, whether the process
    that wrote its name is alive."""
    try:
        with open_regular(folder / LOCK) as file:
            holder, inode = _read_holder(file.fileno()), os.fstat(file.fileno()).st_ino
    except OSError:
        return False
    if holder is None:
        return False
    try:
        locks = Path("/proc/locks").read_text()
    except OSError:
        return True
    return any(f":{inode} " in line for line in locks.splitlines() if "FLOCK" in line)


def _lock_file(folder: Path) -> Path:
    path = folder / LOCK
    if path.exists() and not path.is_file():
        raise RunError(f"{shown(path)}: not a regular file; delete it and run the same command again")
    return path


def _acquire(fd: int, folder: Path) -> None:
    started = time.monotonic()
    while True:
        with durable.writing(folder), suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, to_json(_holder()), 0)
            return
        holder = _read_holder(fd)
        if holder or time.monotonic() - started > _PATIENCE:
            user = f"in use by {holder or 'another process'}"
            raise InUse(f"{shown(folder)}: {user}; wait for it to finish, or choose another folder")
        time.sleep(0.01)


def _release() -> None:
    """A forked child must not keep its parent's folders locked."""
    for fd in _held:
        with suppress(OSError):
            os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_release)


def _holder() -> Json:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _read_holder(fd: int) -> str | None:
    """`process 17 on host since ...`; None if the holder has not written its name yet."""
    try:
        holder = json.loads(os.pread(fd, 4096, 0))
        pid, host, since = holder["pid"], holder["host"], holder["since"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if host == socket.gethostname() and not _is_alive(pid):
        return None
    return f"process {pid} on {host} since {since}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
