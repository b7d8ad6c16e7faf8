"""One request to a model process, and the events that answer it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from seqloom.core.rows import Json
from seqloom.serve.faults import Refused, busy, cleaned


class Exchange:
    """Iterate to get its events; close it to end the work, finished or not."""

    version = ""  # of the weights that answer

    def __init__(self, request: Json, cancel: Callable[[Exchange], None], unread: int) -> None:
        """`unread`: most bytes of events that wait for whoever reads them."""
        self.request, self.id = request, int(request["id"])
        self._cancel, self._unread = cancel, unread
        self._events: asyncio.Queue[Json | Refused] = asyncio.Queue()
        self._waiting = 0
        self.size = 0  # about how many bytes were taken
        self._over = False

    def put(self, event: Json, share: int) -> None:
        """`share`: about how many bytes it takes."""
        if self._over:
            return
        if "error" in event:
            self.fail(_refused(event["error"], self.request))
        elif self._waiting + share > self._unread and "done" not in event and self._waiting:
            self.fail(Refused(503, "aborted: the client reads too slowly", code="slow_client"))
            self._cancel(self)
        else:
            self._waiting += share
            self._over = "done" in event
            self._events.put_nowait(event | {"_share": share})

    def fail(self, refused: Refused) -> None:
        if not self._over:
            self._over = True
            self._events.put_nowait(refused)

    async def next(self) -> Json:
        """The next event; raises Refused if the request failed."""
        event = await self._events.get()
        if isinstance(event, Refused):
            self._events.put_nowait(event)  # for whoever asks again
            raise event
        share = event.pop("_share")
        self._waiting -= share
        self.size += share
        return event

    async def __aiter__(self) -> AsyncIterator[Json]:
        """All events but the last, `done`, which `all` gives too."""
        while "done" not in (event := await self.next()):
            yield event
        self.done = event["done"]

    async def all(self, name: str) -> list[Any]:
        """What the events hold under a name."""
        return [event[name] async for event in self if name in event]

    def close(self) -> None:
        if not self._over:
            self._over = True
            self._cancel(self)


def _refused(error: Json, request: Json) -> Refused:
    message = cleaned(str(error.get("message", "")), request) or "the model process gave no reason"
    if error.get("kind") == "user":
        return Refused(400, message)
    if error.get("kind") == "full":
        return Refused(507, message)
    return busy() if error.get("kind") == "busy" else Refused(500, message, code="model_failed")
