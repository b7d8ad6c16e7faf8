"""How much memory there is, so that what cannot fit is refused before the system kills the process."""

from __future__ import annotations

import resource
from pathlib import Path

from seqloom.core.errors import RunError

_GROUP = Path("/sys/fs/cgroup")  # of a container


def require(need: int, what: str, way_out: str, detail: str = "") -> None:
    """Raise if something needs more bytes than there are: `training needs about 12.3 GB (20 M parameters), but ...`."""
    room = available()
    if room is not None and need > room:
        about = f"{what} needs about {need / 1e9:.1f} GB{f' ({detail})' if detail else ''}"
        raise RunError(f"{about}, but only {room / 1e9:.1f} GB are available; {way_out}")


def available() -> int | None:
    """Bytes this process can still allocate; None if unknown."""
    rooms = []
    meminfo, status = Path("/proc/meminfo"), Path("/proc/self/status")
    if meminfo.exists():
        rooms.append(_kilobytes(meminfo, "MemAvailable:"))
    if (room := _room_of_the_group()) is not None:
        rooms.append(room)
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and status.exists():
        rooms.append(soft - _kilobytes(status, "VmSize:"))
    return min(rooms, default=None)


def _room_of_the_group() -> int | None:
    """What a container may still use; the system takes back what it caches of files. None: no limit, or none known."""
    try:
        facts = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
        used = int((_GROUP / "memory.current").read_text()) - int(facts.get("file", 0))
        return max(0, int((_GROUP / "memory.max").read_text()) - used)  # `max` is no number: no limit
    except (OSError, ValueError):
        return None


def _kilobytes(path: Path, key: str) -> int:
    line = next(line for line in path.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024
