"""The token of the server, and the sessions of browsers that showed it.

Only SHA-256 digests are kept in memory, and only digests, all of one length, are compared.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from seqloom.core.errors import RunError, UserError
from seqloom.serve.limits import Limits

BITS = 256
_SHAPE = re.compile(r"[A-Za-z0-9_-]{43,128}")  # 43 characters of base 64 hold 256 bits
_MINUTE = 60.0
_ADDRESSES = 10_000  # whose attempts are counted; the one that was longest silent is forgotten


def digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def same(one: bytes, other: bytes) -> bool:
    """Of two digests, in constant time."""
    return secrets.compare_digest(one, other)


def kept_token(path: Path) -> tuple[str, bool]:
    """The token in the file, and whether it was made just now; only its owner can read it."""
    try:
        return _read(path), False
    except FileNotFoundError:
        return _make(path), True
    except OSError as error:
        raise UserError(f"{path}: cannot read the token ({error.strerror}); give another --token-file") from None


def _read(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise UserError(f"{path}: not a regular file; give another --token-file, or delete it for a new token")
        if about.st_mode & 0o077 or about.st_uid != os.geteuid():
            raise UserError(f"{path}: others may read it; chmod 600 it, or delete it for a new token")
        text = file.read(1000).decode("ascii", "replace").strip()
    if not _SHAPE.fullmatch(text):
        raise UserError(f"{path}: not a token of at least {BITS} bits; delete the file, and a new one is made")
    return text


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(BITS // 8)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"{path}: cannot write the token ({error.strerror}); give another --token-file") from None
    return token


class Attempts:
    """Wrong tokens of the last minute, by address."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def wrong(self, address: str) -> bool:
        """Note one; whether there were too many."""
        times = self._times.setdefault(address, deque(maxlen=self._most + 1))
        self._times.move_to_end(address)
        if len(self._times) > _ADDRESSES:
            self._times.popitem(last=False)
        now = self._clock()
        while times and times[0] <= now - _MINUTE:
            times.popleft()
        times.append(now)
        return len(times) > self._most


class Session(NamedTuple):
    csrf: str  # must come along in a header with each request that changes something
    ends: float


class Sessions:
    """Browsers that showed the token, by the digest of their cookie."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._known: OrderedDict[bytes, Session] = OrderedDict()

    def open(self) -> tuple[str, Session]:
        """The value of the cookie, and the session."""
        cookie = secrets.token_urlsafe(BITS // 8)
        session = Session(secrets.token_urlsafe(BITS // 8), self._clock() + self._limits.session_seconds)
        self._known[digest(cookie.encode())] = session
        while len(self._known) > self._limits.sessions:
            self._known.popitem(last=False)
        return cookie, session

    def find(self, cookie: str) -> Session | None:
        session = self._known.get(digest(cookie.encode("utf-8", "replace")))
        return session if session is not None and session.ends > self._clock() else None
