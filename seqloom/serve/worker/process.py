"""The main loop: requests come in by a thread that reads; decoding and all other work take turns, piece by piece.

A request that fails is told so, and ends alone. The process ends with its socket.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.decode.batcher import Batcher
from seqloom.decode.rows import Failed, Prompted, Token
from seqloom.serve.children import frames
from seqloom.serve.worker.faults import told
from seqloom.serve.worker.looking import OPS, Events
from seqloom.serve.worker.opening import Served
from seqloom.serve.worker.writing import Writing

_SLICE = 0.02  # seconds of other work between two steps of decoding


class Worker:
    def __init__(self, wire: socket.socket, served: Served, rows: int = 32) -> None:
        self.wire, self.served, self.rows = wire, served, rows
        generates = served.run is not None and served.run.task.verb == "generate"
        self.batcher = Batcher(served.run.model, rows) if generates and served.run else None
        self.inbox: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self.writings: dict[int, Writing] = {}
        self.jobs: deque[tuple[Json, Events]] = deque()
        self.out: list[Json] = []

    def run(self) -> None:
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            self._hear()
            if self.batcher is not None and self.batcher.busy:
                self._decode(self.batcher)
            if self.jobs:
                self._work()
            self._send()

    @property
    def busy(self) -> bool:
        return bool(self.jobs) or (self.batcher is not None and self.batcher.busy)

    def _receive(self) -> None:
        """Ends the process with the socket, whatever the main thread is doing."""
        try:
            while (frame := frames.receive(self.wire)) is not None:
                self.inbox.put(frame)
        except (frames.Broken, OSError):
            pass
        os._exit(0)

    def _hear(self) -> None:
        """All requests that have come; waits for one if there is nothing to do."""
        if not self.busy:
            self._begin(self.inbox.get())
        while not self.inbox.empty():
            self._begin(self.inbox.get())

    def _send(self) -> None:
        if not self.out:
            return
        try:
            frames.send(self.wire, {"events": self.out})
        except frames.Broken:
            for event in self.out:
                self._send_alone(event)
        except OSError:
            os._exit(0)
        self.out = []

    def _send_alone(self, event: Json) -> None:
        try:
            frames.send(self.wire, event)
        except frames.Broken:
            error = {"kind": "failed", "message": "the answer is too long to be sent; ask for less at once"}
            frames.send(self.wire, {"id": event["id"], "error": error})

    def _begin(self, asked: Json) -> None:
        try:
            op = str(asked.get("op"))
            if op == "cancel":
                self._cancel(asked["id"])
            elif op == "stats":
                self.out += [{"id": asked["id"], "stats": self.stats()}, {"id": asked["id"], "done": {}}]
            elif op == "generate":
                self._write(asked)
            elif op in OPS and (self.served.run is not None or op == "ask"):
                self.jobs.append((asked, OPS[op](self.served, asked)))
            else:
                raise UserError("op: this process does not know it")
        except Exception as error:
            self._fail(asked, error)

    def _write(self, asked: Json) -> None:
        if self.batcher is None or self.served.run is None:
            raise UserError("this model does not generate; it predicts")
        writing = Writing(self.served.run, asked)
        self.batcher.add(writing.id, writing.request)
        self.writings[writing.id] = writing

    def _cancel(self, id: int) -> None:
        writing = self.writings.pop(id, None)
        if writing is not None and self.batcher is not None:
            self.batcher.cancel(id)
            self.out += writing.abort()
        for job in [job for job in self.jobs if job[0]["id"] == id]:
            self.jobs.remove(job)
            self.out.append({"id": id, "done": {}})

    def _decode(self, batcher: Batcher) -> None:
        try:
            events = batcher.step()
        except Exception as error:  # not one request's fault: the batch itself is in disorder
            for id in list(self.writings):
                self._fail({"id": id}, error)
            self.batcher = Batcher(batcher.model, self.rows)
            return
        for event in events:
            writing = self.writings.get(event.key)  # type: ignore[call-overload]
            if writing is not None:
                self._hand_on(batcher, writing, event)

    def _hand_on(self, batcher: Batcher, writing: Writing, event: Any) -> None:
        if isinstance(event, Failed):
            self._fail({"id": writing.id}, event.error)
            return
        try:
            if isinstance(event, Prompted):
                self._say(writing.begin(event))
            elif isinstance(event, Token):
                self._say(writing.take(event))
                if writing.texts[event.index].over and event.end is None:
                    batcher.cancel(writing.id, event.index)
        except Exception as error:
            batcher.cancel(writing.id)
            self._fail({"id": writing.id}, error)

    def _say(self, events: Events) -> None:
        for event in events:
            if "done" in event:
                writing = self.writings.pop(event["id"])
                tokens = len(writing.request.prompt) + writing.written // writing.request.count
                event["done"]["state_bytes"] = self.served.state_bytes(tokens)
            self.out.append(event)

    def _work(self) -> None:
        """Some of the oldest job; then it is the turn of the next."""
        asked, events = self.jobs.popleft()
        until, rows = time.perf_counter() + _SLICE, list[Json]()
        try:
            for event in events:
                rows += event.pop("rows", [])
                if event:
                    self.out.append({"id": asked["id"], **event})
                if time.perf_counter() > until:
                    self.jobs.append((asked, events))
                    break
            else:
                if rows:
                    self.out.append({"id": asked["id"], "rows": rows})
                    rows = []
                self.out.append({"id": asked["id"], "done": {}})
        except Exception as error:
            self._fail(asked, error)
            return
        if rows:
            self.out.append({"id": asked["id"], "rows": rows})

    def _fail(self, asked: Json, error: Exception) -> None:
        self.writings.pop(asked.get("id", -1), None)
        self.out.append({"id": asked.get("id", -1), "error": told(error, str(asked.get("path", "")))})

    def stats(self) -> Json:
        batcher = self.batcher
        return {
            "active": len(self.writings) + len(self.jobs),
            "queued": 0 if batcher is None else len(batcher.queue),
            "rows": 0 if batcher is None else batcher.active,
            "steps": 0 if batcher is None else batcher.steps,
            "tokens": 0 if batcher is None else batcher.tokens,
            "rss": _resident(),
        }


def _resident() -> int | None:
    """Bytes of memory in use; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
