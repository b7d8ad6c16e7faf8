"""A model process: started with a socket of its own, asked over it, watched, and started again when it has ended."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.serve.children import frames
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.faults import busy
from seqloom.serve.limits import Limits

log = logging.getLogger("seqloom.serve")
WORKER = ("seqloom.serve.worker",)  # module and first arguments; the number of the socket follows
_FIRST, _LONGEST = 0.1, 30.0  # seconds between starts
_SETTLED = 60.0  # seconds of a life that was long enough to begin with the first pause again


class Failed(Exception):
    """The process says that it cannot do what it was opened for."""


class Process:
    """One life of a model process."""

    def __init__(self, words: Sequence[str], opening: Json, limits: Limits) -> None:
        self._words, self._opening, self._limits = words, opening, limits
        self._numbers = itertools.count(1)
        self._asked: dict[int, Exchange] = {}
        self._reading: asyncio.Task[None] | None = None
        self._heard = time.monotonic()

    async def start(self) -> Json:
        """What it says of what it has opened."""
        ours, theirs = socket.socketpair()
        with theirs:
            start = (sys.executable, "-m", "seqloom.serve.children.born", str(os.getpid()), *self._words)
            self._process = await asyncio.create_subprocess_exec(
                *start, str(theirs.fileno()), pass_fds=[theirs.fileno()], stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._writer.write(frames.pack(self._opening))
        try:
            first = await asyncio.wait_for(frames.read(reader), self._limits.start_seconds)
        except (TimeoutError, frames.Broken):
            raise Failed("the model process did not start in time") from None
        if first is None:
            raise Failed("the model process ended while it was loading; too little memory is the usual reason")
        if "ready" not in first:
            raise Failed(str(first.get("failed", {}).get("message", "the model process could not load it")))
        self._reading = asyncio.create_task(self._read(reader))
        facts: Json = first["ready"]
        return facts

    @property
    def alive(self) -> bool:
        return self._reading is not None and not self._reading.done()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def asked(self) -> int:
        return len(self._asked)

    def ask(self, request: Json) -> Exchange:
        if not self.alive:
            raise busy("the model is being restarted; try again")
        exchange = Exchange(request | {"id": next(self._numbers)}, self._cancel, self._limits.unread)
        data = frames.pack(exchange.request)
        if not self._asked:
            self._heard = time.monotonic()
        self._asked[exchange.id] = exchange
        self._writer.write(data)
        return exchange

    def _cancel(self, exchange: Exchange) -> None:
        if self._asked.pop(exchange.id, None) is not None and self.alive:
            with suppress(ConnectionError, RuntimeError):
                self._writer.write(frames.pack({"id": exchange.id, "op": "cancel"}))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while (frame := await frames.read(reader)) is not None:
                self._heard = time.monotonic()
                events = frame.get("events") or [frame]
                for event in events:
                    self._hand_on(event)
        except (frames.Broken, TypeError, ValueError, KeyError, AttributeError) as error:
            log.error("a model process sent what cannot be read: %s", quoted(str(error)))
        finally:
            self.kill()
            for exchange in self._asked.values():
                exchange.fail(busy("the model process has ended; try again"))
            self._asked.clear()

    def _hand_on(self, event: Json) -> None:
        exchange = self._asked.get(event["id"])
        if exchange is None:
            return  # cancelled
        exchange.put(event, 200 + sum(len(str(value)) for value in event.values()))
        if "done" in event or "error" in event:
            self._asked.pop(event["id"], None)

    async def ended(self) -> None:
        """Returns when it has ended, which it also does if it is busy without a sign of life."""
        assert self._reading is not None
        while not self._reading.done():
            await asyncio.wait({self._reading}, timeout=min(5.0, self._limits.hang_seconds / 4))
            if self._asked and time.monotonic() - self._heard > self._limits.hang_seconds:
                log.error("a model process hangs; it is started again")
                self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """With all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """The end of the socket tells it to end; it has a second for that."""
        if not hasattr(self, "_process"):
            return
        if hasattr(self, "_writer"):
            self._writer.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1.0)
        self.kill()
        await self._process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})


class Child:
    """A model process that is always there: when one ends, the next is started, after longer and longer pauses."""

    def __init__(self, words: Sequence[str], opening: Json, limits: Limits) -> None:
        self._make: Callable[[], Process] = lambda: Process(words, opening, limits)
        self._name = os.path.basename(str(opening.get("open", "")))
        self._status = "loading"
        self.facts: Json = {}
        self.process: Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    @property
    def status(self) -> str:
        """loading, ready, restarting or failed"""
        dead = self.process is None or not self.process.alive
        return "restarting" if self._status == "ready" and dead else self._status

    async def start(self) -> None:
        """Raises Failed if it cannot be opened; afterwards it is kept alive."""
        process = self._make()
        try:
            self.facts = await process.start()
        except BaseException:
            self._status = "failed"
            await process.close()
            raise
        self.process, self._status = process, "ready"
        self._keeping = asyncio.create_task(self._keep())

    def ask(self, request: Json) -> Exchange:
        if self.process is None or self.status != "ready":
            raise busy("the model is not ready; try again")
        exchange = self.process.ask(request)
        exchange.version = self.version
        return exchange

    @property
    def version(self) -> str:
        return str(self.facts.get("version", ""))

    async def _keep(self) -> None:
        pause = _FIRST
        while True:
            assert self.process is not None
            started = time.monotonic()
            await self.process.ended()
            self._status = "restarting"
            await self.process.close()
            pause = _FIRST if time.monotonic() - started > _SETTLED else pause
            log.warning("%s: its process has ended; starting it again", quoted(self._name))
            while self._status != "ready":
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST)
                await self._again()

    async def _again(self) -> None:
        self.process = self._make()
        try:
            self.facts = await self.process.start()
            self._status = "ready"
        except (Failed, OSError) as error:
            self._status = "failed"
            log.error("%s: %s", quoted(self._name), quoted(str(error)))
            await self.process.close()

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        if self.process is not None:
            await self.process.close()
        self._status = "failed"

    async def drain(self, seconds: float) -> None:
        """Wait until nothing is asked of it any more, and close it."""
        deadline = time.monotonic() + seconds
        while self.process is not None and self.process.asked and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await self.close()
