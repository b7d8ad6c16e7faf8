"""The server under what takes long: thousands of generated requests, many slow clients, hundreds of streams."""

from __future__ import annotations

import os
import resource
import socket
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["SEQLOOM_SCHEMA_CASES"] = "6000"

import test_serve_schema
from serve_toys import AUTHORIZED, Running, head, receive, serving, until


@pytest.mark.parametrize("mode", test_serve_schema.MODES, ids=["valid", "invalid"])
def test_no_generated_request_of_thousands_is_an_error_of_the_server(mode: Any, tmp_path: Path) -> None:
    with test_serve_schema.whole(tmp_path) as server:
        test_serve_schema.test_no_generated_request_is_an_error_of_the_server(server, mode)


def health(server: Running, count: int = 50) -> float:
    """The slowest of some answers, in seconds."""
    times = []
    for _ in range(count):
        started = time.monotonic()
        assert server.ask("GET", "/health").status == 200
        times.append(time.monotonic() - started)
    return statistics.quantiles(times, n=50)[-1]


def test_slow_clients_hold_up_no_one() -> None:
    """200 that send a byte a second, 100 that never read: closed within 30 s, others as quick as before."""
    with serving("book") as server:
        quiet = health(server)
        wires = [server.connect() for _ in range(300)]
        body = b'{"prompt": "<flood>", "max_new": 1000}'
        headers = {
            "Host": "localhost",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **AUTHORIZED,
        }
        for wire in wires[200:]:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sendall(head("POST", "/api/models/book/generate", headers) + body)
        started, sent = time.monotonic(), b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X" * 100
        closed: set[int] = set()
        while len(closed) < 200 and time.monotonic() - started < 40:
            for number, wire in enumerate(wires[:200]):
                try:
                    at = int(time.monotonic() - started)
                    wire.sendall(sent[at : at + 1])
                except OSError:
                    closed.add(number)
            time.sleep(1)
        busy = health(server)
        assert len(closed) == 200 and time.monotonic() - started < 35
        assert until(lambda: server.guard.room.active == 0, 40)
        print(f"health p98 quiet {1000 * quiet:.1f} ms, beside slow clients {1000 * busy:.1f} ms")
        for wire in wires:
            wire.close()


def test_five_hundred_streams_and_half_of_them_leave() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with serving("book") as server, ThreadPoolExecutor(500) as pool:

        def ask(number: int) -> Any:
            reply = server.ask("POST", "/api/models/book/generate", {"prompt": f"<slow:0.01> {number}", "max_new": 50})
            return reply.status, sum("text" in event for event in reply.events()[:-1])

        assert Counter(pool.map(ask, range(500))) == {(200, 50): 500}

        def leave(number: int) -> None:
            body = b'{"prompt": "<slow:0.1>", "max_new": 1000}'
            length = {"Content-Length": str(len(body))}
            with server.connect() as wire:
                own = {"Host": "localhost", "Content-Type": "application/json", **length, **AUTHORIZED}
                wire.sendall(head("POST", "/api/models/book/generate", own) + body)
                if number < 200:
                    receive(wire)

        list(pool.map(leave, range(250)))
        started = time.monotonic()
        assert until(lambda: server.busy() == 0, 10)
        print(f"250 clients left: work ended after {time.monotonic() - started:.2f} s")


def test_twice_the_places_are_refused_at_once() -> None:
    """The limits as shipped: 1,024 requests for 512 places."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with serving("book") as server, ThreadPoolExecutor(1024) as pool:
        limits = server.state.limits
        places = limits.in_flight + limits.queue

        def ask(number: int) -> Any:
            started = time.monotonic()
            body = {"model": "book", "prompt": f"<slow:0.5> {number}", "max_tokens": 10}
            return server.ask("POST", "/v1/completions", body).status, time.monotonic() - started

        found = list(pool.map(ask, range(2 * places)))
        assert Counter(status for status, _ in found) == {200: places, 503: places}
        slowest = max(seconds for status, seconds in found if status == 503)
        print(f"the slowest of {places} refusals took {slowest:.2f} s, the client's own threads included")


@pytest.mark.parametrize("_", range(3))
def test_a_killed_process_is_back(_: int) -> None:
    with serving("book") as server:
        os.kill(server.state.models.find("book").child.process.pid, 9)
        started = time.monotonic()
        assert until(lambda: server.ask("POST", "/v1/completions", {"model": "book", "prompt": "a"}).status == 200, 5)
        print(f"back after {time.monotonic() - started:.2f} s")
