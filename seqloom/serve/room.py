"""Places for requests: some are worked on, some wait for their turn, and the rest is told so at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from seqloom.serve.faults import busy


class Room:
    def __init__(self, in_flight: int, queue: int) -> None:
        self.in_flight, self.queue = in_flight, queue
        self.active = 0
        self.reading = 0  # requests that have a place kept while their body arrives
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def keep(self) -> None:
        """A place, before the body is read; refused if there is none."""
        if self.active + self.waiting + self.reading >= self.in_flight + self.queue:
            raise busy()
        self.reading += 1

    def give_up(self) -> None:
        self.reading -= 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """In the order in which requests came."""
        if self.active >= self.in_flight:
            await self._wait()
        else:
            self.active += 1
        try:
            yield
        finally:
            self._leave()

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place that it was given
            else:
                with suppress(ValueError):
                    self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # the place goes to it
                return
        self.active -= 1
