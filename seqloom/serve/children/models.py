"""Everything that is served, by name: for each run or index a model process, and a second one for slow looks inside."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.serve.children.child import WORKER, Child, Failed
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.faults import busy, no_model
from seqloom.serve.limits import Limits

log = logging.getLogger("seqloom.serve")
_STRANGE = re.compile(r"[%/\\\x00-\x1f\x7f\ud800-\udfff]")  # what cannot stand in a path of a URL
LOOKS = frozenset({"explain"})  # asked of the second process, so that they hold up no one


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How runs are opened."""

    int8: bool = False
    rows: int = 32  # decoded together
    threads: int | None = None
    memory: int | None = None  # bytes of address space
    worker: Sequence[str] = WORKER


@dataclass
class Served:
    """A run or an index, and the processes that hold it."""

    name: str
    folder: str
    kind: str  # run or index
    opening: Opening
    limits: Limits
    mark: str = ""  # changes when the files do
    child: Child = field(init=False)
    look: Child | None = field(init=False, default=None)
    _looked: float = field(init=False, default=0.0)  # when the second one was last asked
    _resting: asyncio.Task[None] | None = field(init=False, default=None)
    _turn: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.child, self.mark = self._new(), mark_of(self.folder)

    def _new(self) -> Child:
        how = self.opening
        first: Json = {"open": self.folder, "kind": self.kind, "int8": how.int8, "rows": how.rows}
        return Child(how.worker, first | {"threads": how.threads, "memory": how.memory}, self.limits)

    @property
    def facts(self) -> Json:
        return {"name": self.name, **self.child.facts, "status": self.child.status}

    async def ask(self, request: Json) -> Exchange:
        if request["op"] not in LOOKS:
            return self.child.ask(request)
        async with self._turn:
            if self.look is None:
                self.look = await self._second()
                self._resting = asyncio.create_task(self._rest(self.look))
            self._looked = time.monotonic()
            return self.look.ask(request)

    async def _second(self) -> Child:
        """Nothing is kept of one that did not start, or whose start nobody waits for any more."""
        look = self._new()
        try:
            await look.start()
        except (Failed, OSError) as error:
            log.error("%s: %s", quoted(self.name), quoted(str(error)))
            raise busy("the model could not be loaded a second time") from None
        return look

    async def _rest(self, look: Child) -> None:
        """Close the second process when it has not been asked for a while; the next look starts it again."""
        while True:
            await asyncio.sleep(self._looked + self.limits.look_seconds - time.monotonic())
            async with self._turn:
                asked = look.process is not None and look.process.asked
                if self.look is not look:
                    return
                if not asked and time.monotonic() - self._looked >= self.limits.look_seconds:
                    self.look = None
                    break
                self._looked = time.monotonic() if asked else self._looked
        await look.close()

    async def reload(self) -> bool:
        """Switch to the files as they are now, if they have changed; what runs ends with the model it began with."""
        mark = mark_of(self.folder)
        if mark == self.mark:
            return False
        new = self._new()
        await new.start()
        async with self._turn:  # the second one may be starting, with the files of before
            old, self.child, self.mark = self.child, new, mark
            look, self.look = self.look, None
        await asyncio.gather(*(each.drain(self.limits.total_seconds) for each in (old, look) if each is not None))
        return True

    async def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        await asyncio.gather(*(each.close() for each in (self.child, self.look) if each is not None))


class Models:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._known: dict[str, Served] = {}
        self._reloading: set[asyncio.Task[None]] = set()

    def add(self, folder: str, kind: str, opening: Opening, named: str = "") -> None:
        """`named`: what it is called after: the folder, or that of the comparison that it is from."""
        name = unique(named or folder, kind, self._known)
        self._known[name] = Served(name, folder, kind, opening, self.limits)

    def of(self, kind: str) -> list[Served]:
        return [each for each in self._known.values() if each.kind == kind]

    def __iter__(self) -> Iterator[Served]:
        return iter(self._known.values())

    def find(self, name: str, kind: str = "run") -> Served:
        served = self._known.get(name)
        if served is None or served.kind != kind:
            raise no_model()
        return served

    @property
    def ready(self) -> bool:
        return all(each.child.status == "ready" for each in self)

    async def start(self) -> None:
        """All at once; raises Failed with the name of one that cannot be opened."""

        async def one(each: Served) -> None:
            try:
                await each.child.start()
            except (Failed, OSError) as error:
                said = str(error)
                raise Failed(said if said.startswith(each.folder) else f"{each.folder}: {said}") from None

        done = await asyncio.gather(*map(one, self), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error

    def reload(self) -> None:
        for each in self:
            task = asyncio.create_task(self._reload(each))
            self._reloading.add(task)
            task.add_done_callback(self._reloading.discard)

    async def _reload(self, each: Served) -> None:
        try:
            if await each.reload():
                log.warning("%s: loaded anew, version %s", quoted(each.name), each.child.version)
        except (Failed, OSError) as error:
            log.error("%s: not loaded anew, the old one stays: %s", quoted(each.name), quoted(str(error)))

    async def close(self) -> None:
        for task in self._reloading:
            task.cancel()
        await asyncio.gather(*(each.close() for each in self))


def unique(folder: str, kind: str, taken: dict[str, Served]) -> str:
    """The name of the folder, such that a URL can hold it; with a number if another one has it."""
    stem = (
        folder.rpartition(":")[2] if ":" in folder and "/" not in folder else os.path.basename(os.path.abspath(folder))
    )
    stem = _STRANGE.sub("_", stem) or kind
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def mark_of(folder: str) -> str:
    """Of the files that a process loads: other files, sizes or times give another mark."""
    found = []
    for path in sorted(Path(folder).glob("model/*")) + [Path(folder, name) for name in ("run.json", "index.json")]:
        try:
            about = path.stat()
        except OSError:
            continue
        found.append(f"{path.name} {about.st_size} {about.st_mtime_ns} {about.st_ino}")
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()[:16]
