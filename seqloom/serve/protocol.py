"""uvicorn's HTTP/1.1 protocol with what it lacks: time limits for slow clients, a number of connections, errors in the
format of this server, and a close that does not destroy an answer that the client has not read yet."""

from __future__ import annotations

import asyncio
from typing import Any

from seqloom.serve.faults import Refused
from seqloom.serve.guard import HEADERS
from seqloom.serve.limits import KB, Limits

_LINGER = 1.0  # seconds in which a client that is still sending may read the answer
_DISCARDED = 64 * KB  # bytes of what it sends meanwhile


def protocol(limits: Limits) -> type:
    """The class that uvicorn makes for each connection."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("Protocol", (_Patient, H11Protocol), {"limits": limits})


class _Patient:
    """In front of uvicorn's class: what is called here goes on to it."""

    limits: Limits
    loop: asyncio.AbstractEventLoop
    transport: Any
    conn: Any
    cycle: Any
    connections: set[Any]

    def connection_made(self, transport: Any) -> None:
        self._head: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        super().connection_made(_Closing(transport, self))  # type: ignore[misc]
        if len(self.connections) > self.limits.connections:
            transport.abort()
        self._wait_for_head()

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._head, self._stuck, self.transport.timer):
            _stop(timer)
        super().connection_lost(error)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        if self.transport.lingers:
            self.transport.discard(len(data))
            return
        super().data_received(data)  # type: ignore[misc]
        if self.cycle is not None and not self.cycle.response_complete:
            _stop(self._head)
            self._head = None
        elif not self.transport.is_closing():
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        """From its first byte on, and from the connection on."""
        if self._head is None:
            self._head = self.loop.call_later(self.limits.read_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head = None
        if self.cycle is None or self.cycle.response_complete:
            self._refuse(Refused(408, "the headers did not arrive in time", close=True))

    def pause_writing(self) -> None:
        if self._stuck is None:
            self._stuck = self.loop.call_later(self.limits.idle_seconds, self.transport.abort)
        super().pause_writing()  # type: ignore[misc]

    def resume_writing(self) -> None:
        _stop(self._stuck)
        self._stuck = None
        super().resume_writing()  # type: ignore[misc]

    def send_400_response(self, message: str) -> None:
        """What h11 cannot read."""
        buffered = len(self.conn.trailing_data[0])
        if buffered > self.limits.header_bytes:
            self._refuse(Refused(431, "headers that are too large", close=True))
        else:
            self._refuse(Refused(400, "not an HTTP request", code="bad_request", close=True))

    def _refuse(self, refused: Refused) -> None:
        """Written by hand: h11 may be in a state in which it takes nothing."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            body = refused.body()
            length = str(len(body)).encode()
            headers = [*refused.headers(), (b"content-length", length), *HEADERS.items()]
            lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
            self.transport.write(b"HTTP/1.1 %d Refused\r\n%s\r\n%s" % (refused.status, lines, body))
        self.transport.linger()

    def _unsupported_upgrade_warning(self) -> None:
        """Answered like any other request: no word of it in the log."""


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class _Closing:
    """A transport that, when it is closed while the client still sends, lets it read the answer first, and that does
    not wait for ever until a client has read the rest of an answer."""

    def __init__(self, transport: Any, protocol: Any) -> None:
        self._transport, self._protocol = transport, protocol
        self.timer: asyncio.TimerHandle | None = None
        self.lingers = False
        self._discarded = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        import h11

        if self._protocol.conn.their_state is h11.SEND_BODY and not self._transport.is_closing():
            self.linger()
        elif not self.lingers:
            self._transport.close()
            self._abort_later()

    def linger(self) -> None:
        if self.lingers:
            return
        self.lingers = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self.timer = self._protocol.loop.call_later(_LINGER, self._end)

    def discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > _DISCARDED:
            self._transport.pause_reading()

    def _end(self) -> None:
        self._transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        _stop(self.timer)
        self.timer = self._protocol.loop.call_later(self._protocol.limits.idle_seconds, self._transport.abort)
