"""Peak memory of a block, in a process that may have used more before."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Peak:
    """`bytes`: peak memory of the block above the level before it; None if unknown."""

    bytes: int | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Peak memory of a block, in a process that may have used more before.

    Linux can reset the peak counter of a process. Elsewhere only a new process-wide peak is visible: the result may be
    too low, or None.
    """
    peak = Peak()
    _trim_heap()
    resettable = _reset_peak()
    before = _resident("VmRSS:") if resettable else _process_peak()
    yield peak
    taken = (_resident("VmHWM:") if resettable else _process_peak()) - before
    peak.bytes = taken if taken > 0 else None


def _trim_heap() -> None:
    """Return freed memory to the system, so that it does not count as used."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _reset_peak() -> bool:
    """Reset the peak counter of this process to its current use; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _resident(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def _process_peak() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
