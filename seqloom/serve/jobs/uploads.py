"""Files that were sent to the server, in a folder of its own state.

    FOLDER/ID/NAME      ID is made here, 32 hexadecimal digits; NAME is what the sender called it, cleaned

A file that is still arriving is in a hidden folder, which is renamed when all of it has come.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
import time
import unicodedata
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from seqloom.core.rows import Json
from seqloom.runs import durable

ID = re.compile(r"[0-9a-f]{32}")
_ARRIVING = ".arriving-"
_DAY, _LEFT = 86_400.0, 60.0  # seconds; the second for what is not arriving any more
_LONGEST, _BYTES = 100, 180  # characters of a name, and bytes without its ending
_STRANGE = re.compile(r"[^\w.() +-]+")


class TooLarge(Exception):
    """More bytes than one file may have."""


class NoRoom(Exception):
    """All files together would take more than they may."""


class Uploads:
    def __init__(
        self, folder: Path, *, largest: int = 200 << 20, total: int = 2_000_000_000, days: float = 7.0
    ) -> None:
        """`largest`: bytes of one file; `total`: bytes of all; `days`: after which a file is deleted."""
        self.folder, self.largest, self.total, self.days = folder, largest, total, days
        self._lock = threading.Lock()
        self._arriving: dict[Path, int] = {}

    def begin(self, name: str) -> Arriving:
        """Raises OSError or RunError if nothing can be written."""
        self.expire()
        place = self.folder / f"{_ARRIVING}{secrets.token_hex(16)}"
        durable.make_folder(self.folder)
        os.mkdir(place, 0o700)
        with self._lock:
            self._arriving[place] = 0
        return Arriving(self, place, cleaned(name))

    def list(self) -> list[Json]:
        """The latest first."""
        self.expire()
        found = [facts for name in _names(self.folder) if (facts := self.one(name))]
        return sorted(found, key=lambda facts: (facts["created"], facts["id"]), reverse=True)

    def one(self, id: str) -> Json | None:
        path = self.path(id)
        try:
            found = path.stat() if path else None
        except OSError:  # deleted in the meantime
            return None
        if path is None or found is None:
            return None
        created = datetime.fromtimestamp(found.st_mtime).astimezone().isoformat(timespec="seconds")
        return {"id": id, "name": path.name, "bytes": found.st_size, "created": created}

    def path(self, id: str) -> Path | None:
        """The file; None if there is none of this id. The form of the id is checked before the disk is asked."""
        if not ID.fullmatch(id):
            return None
        names = [name for name in _names(self.folder / id) if not name.startswith(".")]
        return self.folder / id / names[0] if len(names) == 1 else None

    def remove(self, id: str) -> bool:
        """Whether it was there."""
        if not self.path(id):
            return False
        doomed = self.folder / f"{_ARRIVING}{secrets.token_hex(16)}"  # from now on it is not there for anybody
        try:
            os.rename(self.folder / id, doomed)
        except FileNotFoundError:
            return False
        shutil.rmtree(doomed, ignore_errors=True)
        return True

    def expire(self) -> None:
        """Delete old files, and what a killed server left of files that were arriving."""
        now = time.time()
        for name in _names(self.folder):
            place = self.folder / name
            with suppress(OSError):
                age = now - place.stat().st_mtime
                left = name.startswith(_ARRIVING) and place not in self._arriving and _silence(place, now) > _LEFT
                if (age > self.days * _DAY and ID.fullmatch(name)) or left:
                    shutil.rmtree(place, ignore_errors=True)

    def taken(self) -> int:
        """Bytes of all files, also those that are arriving."""
        paths = [path for name in _names(self.folder) if (path := self.path(name))]
        with self._lock:
            return sum(map(_size, paths)) + sum(self._arriving.values())

    def _count(self, place: Path, size: int) -> None:
        with self._lock:
            self._arriving[place] = size

    def _forget(self, place: Path) -> None:
        with self._lock:
            self._arriving.pop(place, None)


class Arriving:
    """One file that is being received: `write` its parts, then `finish` or `abandon` it."""

    def __init__(self, uploads: Uploads, place: Path, name: str) -> None:
        self.uploads, self.place, self.name, self.size = uploads, place, name, 0
        self.room = uploads.total - uploads.taken()
        self.file = open(place / name, "xb", buffering=0)  # noqa: SIM115  # closed by finish or abandon

    def write(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self.uploads.largest:
            raise TooLarge
        if self.size > self.room:
            raise NoRoom
        durable.write_all(self.file.fileno(), memoryview(part))
        self.uploads._count(self.place, self.size)

    def finish(self) -> Json:
        """It has all arrived: what it is."""
        os.fsync(self.file.fileno())
        self.file.close()
        id = secrets.token_hex(16)
        os.rename(self.place, self.uploads.folder / id)
        durable.sync_folder(self.uploads.folder)
        self.uploads._forget(self.place)
        found = self.uploads.one(id)
        return found or {"id": id, "name": self.name, "bytes": self.size}

    def abandon(self) -> None:
        """Leave nothing of it; after `finish` this does nothing."""
        self.file.close()
        shutil.rmtree(self.place, ignore_errors=True)
        self.uploads._forget(self.place)


def cleaned(name: str) -> str:
    """The last part of a path, of letters, digits and a few signs; the ending stays, because it says what a file is."""
    last = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])
    plain = _STRANGE.sub("_", last).strip(" .-_") or "data"
    stem, dot, ending = plain.rpartition(".")
    if not dot or len(ending) > 12:
        stem, dot, ending = plain, "", ""
    short = stem[: _LONGEST - len(ending)].encode()[:_BYTES].decode(errors="ignore")
    return f"{short}{dot}{ending}"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _silence(place: Path, now: float) -> float:
    """Seconds in which nothing was written: what another server of this folder receives grows."""
    return now - max(path.stat().st_mtime for path in (place, *place.iterdir()))
