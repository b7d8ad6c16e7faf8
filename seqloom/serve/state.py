"""What the routes share: the models, the pages that were made, the folder of runs, the limits."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqloom.serve.children.models import Models
from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits
from seqloom.serve.token import Attempts, Sessions, digest


class Pages:
    """HTML pages that this server made, the newest of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def add(self, html: str) -> str:
        """The path of the page."""
        name, data = secrets.token_urlsafe(16), html.encode("utf-8", "replace")
        if len(data) > self._limits.page_bytes:
            raise Refused(500, "the page is too large to be kept", code="page_too_large")
        self._kept[name] = data
        while len(self._kept) > self._limits.pages or sum(map(len, self._kept.values())) > self._limits.page_bytes:
            self._kept.popitem(last=False)
        return f"/api/pages/{name}"

    def find(self, name: str) -> bytes:
        if name not in self._kept:
            raise Refused(404, "no such page; it may have made room for newer ones")
        return self._kept[name]


@dataclass
class State:
    models: Models
    limits: Limits
    token: str | None = None  # None: everyone on this machine may ask
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})  # as in a Host header, without port
    runs: Path = Path("runs")  # folder whose runs and comparisons are shown
    secure: bool = False  # cookies only over TLS
    attempts: Attempts = field(init=False)
    sessions: Sessions = field(init=False)
    pages: Pages = field(init=False)
    past: Any = None  # these three are those of serve/api: the runs that are there,
    uploads: Any = None  # the files that were sent,
    jobs: Any = None  # and what is trained and compared; None: nothing is
    closing: list[Callable[[], Any]] = field(default_factory=list)  # called when the server stops, in a thread
    stopping: bool = False  # no new requests

    def __post_init__(self) -> None:
        self.attempts = Attempts(self.limits.wrong_tokens)
        self.sessions, self.pages = Sessions(self.limits), Pages(self.limits)

    @property
    def digest(self) -> bytes | None:
        return None if self.token is None else digest(self.token.encode())
