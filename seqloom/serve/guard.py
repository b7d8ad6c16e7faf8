"""What stands between the network and the application: a pure ASGI middleware.

A request passes the checks of its head, gets a place, is read whole (within size and time), waits for its turn, and is
worked on as a task of its own, which ends when the client leaves, when time is up, or when the server stops. Every
answer leaves with the security headers; every error leaves in one format.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from seqloom.core.quoting import quoted
from seqloom.serve import checks
from seqloom.serve.bodies import read_json
from seqloom.serve.checks import Head
from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits
from seqloom.serve.room import Room
from seqloom.serve.state import State

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("seqloom.serve")
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
LASTING = ("/api/jobs/", "/api/uploads")  # may take longer than `total_seconds`
STREAM = b"text/event-stream"


class Guard:
    def __init__(self, app: App, state: State) -> None:
        self.app, self.state, self.limits = app, state, state.limits
        self.token = state.digest
        self.room = Room(self.limits.in_flight, self.limits.queue)
        self.ended = asyncio.Event()  # those that still run are aborted
        self.routes: list[Any] = []  # of the application, for whoever lists them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        answer = Answer(send)
        scope.setdefault("state", {})["open"] = []  # what has to be closed when the request ends
        try:
            await self._serve(scope, receive, answer)
        except Refused as refused:
            await answer.refuse(refused)
        except Exception as error:
            log.error("%s in a request to %s", quoted(f"{type(error).__name__}: {error}"), quoted(scope["path"][:200]))
            await answer.refuse(Refused(500, "internal error"))
        finally:
            for each in scope["state"]["open"]:
                each.close()

    async def _serve(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        head = Head.of(scope)
        try:
            most = self._check(head)
            if head.public and not head.has_body:  # answered without a place, also when the server is busy
                await self.app(scope, receive, answer.send)
                return
            if self.state.stopping:
                raise Refused(503, "the server is stopping", code="stopping", wait=5, close=True)
            self.room.keep()
        except Refused as refused:
            refused.close = refused.close or head.has_body  # which has not been read
            raise
        kept = Kept(self.room)
        scope["state"]["open"].append(kept)
        body = Body(receive, most, self.limits)
        if not head.upload:
            data = await body.whole()
            scope["state"]["json"] = read_json(data, self.limits) if data else None
        work = asyncio.create_task(self._in_turn(scope, body, answer, kept))
        await self._watch(work, body, answer, lasting=head.path.startswith(LASTING), streamed=head.upload)

    def _check(self, head: Head) -> int:
        checks.check_host(head, self.state.hosts)
        checks.check_page(head)
        checks.check_size(head, self.limits)
        checks.check_token(head, self.token, self.state.sessions, self.state.attempts)
        return checks.check_form(head, self.limits)

    async def _in_turn(self, scope: Scope, body: Body, answer: Answer, kept: Kept) -> None:
        kept.close()
        async with self.room.turn():
            await self.app(scope, body.receive, answer.send)

    async def _watch(self, work: asyncio.Task[None], body: Body, answer: Answer, lasting: bool, streamed: bool) -> None:
        """Until the work is done, the client has left, its time is over, or the server ends."""
        gone = asyncio.create_task(body.left())
        stop = asyncio.create_task(self.ended.wait())
        try:
            limit = None if lasting else self.limits.total_seconds
            await asyncio.wait({work, gone, stop}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
            elif gone.done():
                return
            elif stop.done():
                raise Refused(503, "aborted: the server is stopping", code="aborted", wait=5, close=True)
            else:
                raise Refused(504, f"took more than {self.limits.total_seconds:g} seconds", close=True)
        finally:
            for task in (gone, stop, work):
                await _end(task)


async def _end(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


class Kept:
    """A place while a body is read: given up once, when the work begins or the request ends."""

    def __init__(self, room: Room) -> None:
        self._room: Room | None = room

    def close(self) -> None:
        if self._room is not None:
            self._room.give_up()
        self._room = None


class Body:
    """The body of a request, counted while it is read, and afterwards word of the client leaving."""

    def __init__(self, receive: Receive, most: int, limits: Limits) -> None:
        self._receive, self._most, self._limits = receive, most, limits
        self._read = 0
        self._data: bytes | None = None  # read, and not handed on yet
        self._complete, self._left = asyncio.Event(), asyncio.Event()

    async def whole(self) -> bytes:
        data = bytearray()
        try:
            async with asyncio.timeout(self._limits.read_seconds):
                while not self._complete.is_set():
                    data += (await self._next())["body"]
        except TimeoutError:
            seconds = f"{self._limits.read_seconds:g}"
            raise Refused(408, f"the body did not arrive within {seconds} seconds", close=True) from None
        self._data = bytes(data)
        return self._data

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._left.set()
            raise Refused(400, "the client has left", close=True)
        part = message.get("body", b"")
        self._read += len(part)
        if self._read > self._most:
            raise checks.too_large(self._most)
        if not message.get("more_body", False):
            self._complete.set()
        return {"type": "http.request", "body": part, "more_body": not self._complete.is_set()}

    async def receive(self) -> Message:
        """For the application: the body, piece by piece if it was not read yet, then that the client has left."""
        if self._data is not None:
            data, self._data = self._data, None
            return {"type": "http.request", "body": data, "more_body": False}
        if not self._complete.is_set():
            try:
                async with asyncio.timeout(self._limits.idle_seconds):
                    return await self._next()
            except TimeoutError:
                raise Refused(408, "the body has stopped to arrive", close=True) from None
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def left(self) -> None:
        """Returns when the client has left."""
        await self._complete.wait()
        while not self._left.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._left.set()


class Answer:
    """The answer on its way out: with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = self.complete = self.stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = [(name.lower(), value) for name, value in message.get("headers", [])]
            given = {name for name, _ in headers}
            self.stream = any(name == b"content-type" and value.startswith(STREAM) for name, value in headers)
            more = [(name, value) for name, value in HEADERS.items() if name not in given]
            message = {**message, "headers": headers + more}
        elif message["type"] == "http.response.body":
            self.complete = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """As an answer, or as the last event of a stream that has begun."""
        if self.complete:
            return
        if not self.started:
            body = refused.body()
            headers = [*refused.headers(), (b"content-length", str(len(body)).encode())]
            await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
            await self.send({"type": "http.response.body", "body": body})
            return
        if not self.stream:
            # the connection is closed, so the client sees that the answer is not whole
            raise ConnectionError("an answer was cut short")
        last = f"data: {json.dumps(refused.facts())}\n\n".encode()
        await self.send({"type": "http.response.body", "body": last})
