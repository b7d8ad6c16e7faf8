"""A real server over model processes without models, and raw connections to it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.serve.app import create_app
from seqloom.serve.children.models import Models, Opening
from seqloom.serve.equipped import equip
from seqloom.serve.limits import Limits
from seqloom.serve.running import Binding, _finish, _server
from seqloom.serve.state import State

WORKER = str(Path(__file__).parent / "serve_worker.py")
TOKEN = "canary-" + "t" * 40
OPENING = Opening(worker=(WORKER,))
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


def state_of(
    *folders: str, indexes: Sequence[str] = (), token: str | None = TOKEN, runs: Path | None = None, **limits: Any
) -> State:
    """`runs`: a folder of runs, for the routes about runs, uploads and jobs."""
    bounds = Limits(**limits)
    models = Models(bounds)
    for folder in folders:
        models.add(folder, "run", OPENING)
    for folder in indexes:
        models.add(folder, "index", OPENING)
    state = State(models, bounds, token)
    if runs is not None:
        state.runs = runs
        equip(state)
    return state


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        lines = [line[6:] for line in self.body.decode().split("\n\n") if line]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


class Running:
    """A server in a thread of this process."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        self.guard = create_app(self.state)
        server = _server(self.guard, self.state, Binding(sock))
        try:
            await self.state.models.start()
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            while not server.started:
                await asyncio.sleep(0.005)
            self._ready.set()
            await self._stop.wait()
            await _finish(self.state, self.guard)
            server.should_exit = True
            await serving
        finally:
            sock.close()
            await self.state.models.close()
            for close in self.state.closing:
                close()

    def call(self, function: Callable[[], Any]) -> Any:
        """In the loop of the server."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    def stats(self, name: str) -> dict[str, Any]:
        """What the model process says of itself."""

        async def run() -> Any:
            return (await (await self.state.models.find(name).ask({"op": "stats"})).all("stats"))[0]

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    def busy(self, name: str = "book") -> int:
        """Requests that the model process, the server or its queue still know."""
        child = self.state.models.find(name).child
        room = self.guard.room
        return room.active + room.waiting + room.reading + child.process.asked + self.stats(name)["active"]

    def __enter__(self) -> Running:
        self._thread.start()
        self._ready.wait(60)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def connect(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def raw(self, data: bytes, timeout: float = 20) -> Reply | None:
        """Send bytes, read one answer; None if the connection was closed without one."""
        with self.connect(timeout) as wire:
            with suppress(ConnectionError):  # the answer may come before everything is sent
                wire.sendall(data)
            return read_reply(wire, bodiless=data.startswith(b"HEAD"))

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, token: bool = True
    ) -> Reply:
        return_headers = {"Host": f"localhost:{self.port}", **(AUTHORIZED if token else {}), **(headers or {})}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            return_headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **return_headers}
        found = self.raw(head(method, path, return_headers) + data)
        assert found is not None
        return found


def head(method: str, path: str, headers: dict[str, str] | Sequence[tuple[str, str]]) -> bytes:
    pairs = headers.items() if isinstance(headers, dict) else headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_reply(wire: socket.socket, bodiless: bool = False) -> Reply | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = receive(wire)
        if not part:
            return None
        data += part
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    status = int(first.split()[1])
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if bodiless:
        return Reply(status, headers, b"")
    if "content-length" in headers:
        while len(body) < int(headers["content-length"]) and (part := receive(wire)):
            body += part
    elif headers.get("transfer-encoding") == "chunked":
        while not body.endswith(b"0\r\n\r\n") and (part := receive(wire)):
            body += part
        body = unchunked(body)
    return Reply(status, headers, body)


def receive(wire: socket.socket) -> bytes:
    try:
        return wire.recv(1 << 16)
    except ConnectionError:
        return b""


def unchunked(data: bytes) -> bytes:
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size or b"0", 16)
        if not count:
            break
        found, data = found + data[:count], data[count + 2 :]
    return found


@contextmanager
def serving(*folders: str, **options: Any) -> Iterator[Running]:
    with Running(state_of(*folders, **options)) as running:
        yield running


def until(condition: Callable[[], Any], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def begin(port: int, body: dict[str, Any], token: str) -> socket.socket:
    """A streamed completion that was asked for."""
    data = json.dumps(body | {"stream": True}).encode()
    headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(data))}
    wire = socket.create_connection(("127.0.0.1", port), 20)
    wire.sendall(head("POST", "/v1/completions", headers | {"Authorization": f"Bearer {token}"}) + data)
    return wire
