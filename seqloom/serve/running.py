"""The life of the server: models first, then the port, then requests until a signal, then an orderly end.

SIGTERM and SIGINT: new requests get 503 at once, running ones have some seconds to finish, then they are aborted with
an explicit mark; a second signal aborts them at once. SIGHUP: models whose files have changed are loaded anew.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from seqloom.serve.app import create_app
from seqloom.serve.equipped import equip
from seqloom.serve.guard import Guard
from seqloom.serve.protocol import protocol
from seqloom.serve.state import State

_ABORTED = 0.5  # seconds for the marks of aborted answers to leave


@dataclass(frozen=True)
class Binding:
    """Where the server listens."""

    sock: socket.socket
    cert: str | None = None
    key: str | None = None


async def run(state: State, binding: Binding, ready: Callable[[], None] = lambda: None) -> None:
    """Until a signal, or until it is cancelled. `ready` is called when requests are answered."""
    stopping, ended = asyncio.Event(), asyncio.Event()
    closing: asyncio.Future[None] | None = None
    try:
        with _signals(state, ended, stopping):
            if not await _started(state, stopping):
                return
            await asyncio.to_thread(equip, state)
            guard = create_app(state)
            guard.ended = ended
            server = _server(guard, state, binding)
            serving = asyncio.create_task(server.serve(sockets=[binding.sock]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.005)
            if serving.done():
                await serving
            ready()
            waiting = asyncio.create_task(stopping.wait())
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            closing = asyncio.ensure_future(_close(state))  # jobs save their work meanwhile
            await _finish(state, guard)
            server.should_exit = True
            await serving
    finally:
        binding.sock.close()
        await (closing or _close(state))
        await state.models.close()


async def _started(state: State, stopping: asyncio.Event) -> bool:
    """Load the models; a signal ends that too."""
    loading, waiting = asyncio.create_task(state.models.start()), asyncio.create_task(stopping.wait())
    await asyncio.wait({loading, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if loading.done():
        await loading
        return True
    loading.cancel()
    await asyncio.wait({loading})
    return False


async def _finish(state: State, guard: Guard) -> None:
    """Running requests end, by themselves or not."""
    state.stopping = True
    room = guard.room
    deadline = asyncio.get_running_loop().time() + state.limits.stop_seconds
    while room.active + room.waiting + room.reading and not guard.ended.is_set():
        if asyncio.get_running_loop().time() > deadline:
            guard.ended.set()
        await asyncio.sleep(0.02)
    if guard.ended.is_set():
        await asyncio.sleep(_ABORTED)


async def _close(state: State) -> None:
    for close in state.closing:
        with suppress(Exception):
            await asyncio.to_thread(close)


def _server(guard: Guard, state: State, binding: Binding) -> Any:
    import uvicorn

    limits = state.limits
    config = uvicorn.Config(
        guard, loop="asyncio", http=protocol(limits), ws="none", lifespan="off", interface="asgi3", log_config=None,
        access_log=False, proxy_headers=False, server_header=False, date_header=True, backlog=limits.connections,
        h11_max_incomplete_event_size=limits.header_bytes + limits.url + 64 * limits.headers,
        timeout_keep_alive=max(1, int(limits.idle_seconds)), timeout_graceful_shutdown=1,
        ssl_certfile=binding.cert, ssl_keyfile=binding.key,
    )  # fmt: skip
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its messages quote requests

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # they are handled here

    return Server(config)


@contextmanager
def _signals(state: State, ended: asyncio.Event, stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            ended.set()
        state.stopping = True
        stopping.set()

    before: dict[int, Any] = {}
    with suppress(ValueError, RuntimeError):  # only the main thread has signals
        deeds: dict[int, Callable[[], None]] = {signal.SIGTERM: stop, signal.SIGINT: stop}
        for number, deed in (deeds | {signal.SIGHUP: state.models.reload}).items():
            previous = signal.getsignal(number)
            loop.add_signal_handler(number, deed)
            before[number] = previous
    try:
        yield
    finally:
        for again, handler in before.items():
            loop.remove_signal_handler(again)
            signal.signal(again, handler)
