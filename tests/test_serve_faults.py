"""Overload, clients that leave or do not read, processes that die or hang, models that change, and the end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serve_toys import AUTHORIZED, Reply, Running, head, read_reply, serving, until

CAP = {"in_flight": 4, "queue": 4}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving("book", "other", "label", **CAP, unread=200_000, hang_seconds=1.0) as running:
        yield running


@pytest.fixture(autouse=True)
def well(server: Running) -> None:
    """Each test begins with a server that is well and idle."""
    assert until(lambda: server.ask("GET", "/health").status == 200, 30)
    assert until(lambda: server.busy() == 0, 30)


def complete(server: Running, prompt: str, stream: bool = False, model: str = "book", tokens: int = 10) -> Reply:
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "stream": stream}
    return server.ask("POST", "/v1/completions", body)


def begun(
    server: Running, prompt: str, stream: bool = True, tokens: int = 1000, path: str = "/v1/completions"
) -> socket.socket:
    """A request that was sent, and of a stream the first bytes."""
    import json

    body = json.dumps({"model": "book", "prompt": prompt, "max_tokens": tokens, "stream": stream}).encode()
    wire = server.connect()
    headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **AUTHORIZED}
    wire.sendall(head("POST", path, headers) + body)
    if stream:
        assert b"200 OK" in wire.recv(500)
    return wire


def at_once(count: int, call: Any) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def test_of_twice_as_many_requests_as_there_are_places_exactly_the_places_are_served(server: Running) -> None:
    places = CAP["in_flight"] + CAP["queue"]
    for _ in range(3):
        found = at_once(2 * places, lambda number: complete(server, f"<slow:0.03> {number}"))
        assert Counter(reply.status for reply in found) == {200: places, 503: places}
        assert all(reply.headers["retry-after"] == "1" for reply in found if reply.status == 503)
        assert until(lambda: server.busy() == 0)


def test_the_last_place_is_given_and_the_next_is_refused(server: Running) -> None:
    places = CAP["in_flight"] + CAP["queue"]
    wires = [begun(server, "<slow:0.05>", stream=False) for _ in range(places)]
    assert until(lambda: server.guard.room.active + server.guard.room.waiting == places)
    assert complete(server, "one more").status == 503
    assert server.ask("GET", "/health").status == 200 and server.ask("GET", "/").status == 200
    wires[-1].close()  # one that waits leaves
    assert until(lambda: server.guard.room.waiting == CAP["queue"] - 1)
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("stream", [True, False])
def test_work_ends_when_its_client_leaves(server: Running, stream: bool) -> None:
    wires = [begun(server, f"<slow:0.05> {number}", stream) for number in range(4)]
    assert until(lambda: server.stats("book")["active"] >= 4)
    for wire in wires:
        wire.close()
    assert until(lambda: server.busy() == 0)
    assert complete(server, "next").status == 200


def test_a_client_that_does_not_read_fills_no_memory(server: Running) -> None:
    with server.connect() as wire:
        body = b'{"prompt": "<flood>", "max_new": 1000}'
        headers = {
            "Host": "localhost",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **AUTHORIZED,
        }
        wire.sendall(head("POST", "/api/models/book/generate", headers) + body)
        assert until(lambda: server.state.models.find("book").child.process.asked == 0, 20)
        assert complete(server, "others go on").status == 200
        found = read_reply(wire)
        assert found and b'"slow_client"' in found.body and found.body.count(b"text") < 1000


def test_one_request_that_kills_the_process_hurts_only_those_that_run_there(server: Running) -> None:
    waiting = begun(server, "<slow:0.05>")
    other = begun(server, "<slow:0.05>", stream=False, tokens=20)
    found = complete(server, "<crash>")
    assert (found.status, found.json()["error"]["code"]) == (503, "overloaded") and "retry-after" in found.headers
    assert b'"error"' in rest(waiting) and read_reply(other).status == 503
    assert complete(server, "a", model="other").status == 200
    assert until(lambda: server.ask("GET", "/health").status == 503 or server.ask("GET", "/health").status == 200)
    assert until(lambda: complete(server, "a").status == 200, 30)


def rest(wire: socket.socket) -> bytes:
    data = b""
    while part := wire.recv(1 << 16):
        data += part
        if data.endswith(b"0\r\n\r\n"):
            break
    return data


def test_a_process_that_is_killed_under_many_clients_leaves_no_one_waiting(server: Running) -> None:
    pid = server.state.models.find("book").child.process.pid

    def ask(number: int) -> Reply:
        return complete(server, f"<slow:0.05> {number}", stream=number % 2 == 0, tokens=100)

    killer = threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL))
    killer.start()
    found = at_once(8, ask)
    for reply in found:
        assert reply.status == 503 or (reply.status == 200 and b'"error"' in reply.body), reply
    assert until(lambda: server.ask("GET", "/health").status == 200, 30)
    assert server.state.models.find("book").child.process.pid != pid
    assert complete(server, "again").status == 200


def test_a_process_that_hangs_or_talks_nonsense_is_started_again(server: Running) -> None:
    for prompt in ("<hang>", "<broken>"):
        assert complete(server, prompt).status == 503
        assert until(lambda: complete(server, "a").status == 200, 30)


def test_explaining_has_a_process_of_its_own(server: Running) -> None:
    found = server.ask("POST", "/api/models/label/explain", {"text": "a"}).json()
    served = server.state.models.find("label")
    assert found["explanation"]["pid"] == served.look.process.pid != served.child.process.pid


def test_the_process_for_explanations_ends_when_nobody_asks_it_and_starts_again() -> None:
    with serving("label", look_seconds=0.3) as server:
        first = server.ask("POST", "/api/models/label/explain", {"text": "a"}).json()["explanation"]["pid"]
        assert until(lambda: server.state.models.find("label").look is None and not alive(first))
        second = server.ask("POST", "/api/models/label/explain", {"text": "a"}).json()["explanation"]["pid"]
        assert second != first


def test_a_client_that_leaves_while_the_process_for_explanations_starts_spoils_nothing() -> None:
    with serving("label-late") as server:
        body = b'{"text": "a"}'
        headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
        for _ in range(2):
            with server.connect() as wire:
                wire.sendall(head("POST", "/api/models/label-late/explain", headers | AUTHORIZED) + body)
                assert until(lambda: server.guard.room.active == 1)
            assert until(lambda: server.guard.room.active == 0)
        assert server.ask("POST", "/api/models/label-late/explain", {"text": "a"}).status == 200


def test_an_answer_names_the_weights_that_made_it_also_if_others_were_loaded_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "label"
    (folder / "model").mkdir(parents=True)
    (folder / "version").write_text("old")
    with serving(str(folder)) as server, ThreadPoolExecutor(1) as pool:
        predict = ("POST", "/api/models/label/predict", {"texts": ["<slow:1>"]})
        slow = pool.submit(server.ask, *predict)
        assert until(lambda: server.busy("label") >= 2)
        (folder / "version").write_text("new")
        (folder / "model" / "weights").write_text("0")
        server.call(server.state.models.reload)
        assert until(lambda: server.state.models.find("label").child.version == "new")
        assert slow.result().headers["x-seqloom-version"] == "old"
        assert server.ask(*predict).headers["x-seqloom-version"] == "new"


def test_predictions_of_one_answer_have_a_limit() -> None:
    with serving("label", predictions=10_000) as server:
        few, many = ({"texts": ["a"] * count} for count in (10, 1000))
        assert server.ask("POST", "/api/models/label/predict", few).status == 200
        assert server.ask("POST", "/api/models/label/predict", many).status == 413


def test_a_name_is_what_a_url_can_hold_and_no_two_have_the_same() -> None:
    with serving("runs/a%b", "other/a%b", "runs/评 论", "runs/a\\b") as server:
        assert [each.name for each in server.state.models] == ["a_b", "a_b-2", "评 论", "a_b-3"]
        assert server.ask("GET", "/v1/models/a_b-2").status == 200
        assert server.ask("GET", "/v1/models/%E8%AF%84%20%E8%AE%BA").json()["id"] == "评 论"


def test_time_is_limited_also_for_streams(tmp_path: Path) -> None:
    with serving("book", total_seconds=0.5) as server:
        assert complete(server, "<slow:0.1>", tokens=100).status == 504
        found = complete(server, "<slow:0.1>", tokens=100, stream=True)
        assert found.status == 200 and found.events()[-1]["error"]["code"] == "timeout"
        assert until(lambda: server.busy() == 0)


def test_a_model_is_swapped_under_load_without_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    (folder / "model").mkdir(parents=True)
    (folder / "version").write_text("0")
    (folder / "model" / "weights").write_text("0")
    with serving(str(folder)) as server:
        stop, found = threading.Event(), []

        def client() -> None:
            while not stop.is_set():
                reply = complete(server, "<slow:0.002>", tokens=10, stream=True)
                prints = {event["system_fingerprint"] for event in reply.events() if event != "[DONE]"}
                found.append((reply.status, prints, reply.headers["x-seqloom-version"]))

        clients = [threading.Thread(target=client) for _ in range(4)]
        for thread in clients:
            thread.start()
        for swap in range(1, 6):
            (folder / "version").write_text(str(swap))
            (folder / "model" / "weights").write_text("0" * (swap + 1))
            server.call(server.state.models.reload)
            assert until(lambda version=str(swap): found and found[-1][2] == version, 30)
        stop.set()
        for thread in clients:
            thread.join()
        assert {status for status, _, _ in found} == {200}
        assert all(prints == {version} for _, prints, version in found)
        assert {version for _, _, version in found} == set("012345")
        server.call(server.state.models.reload)  # nothing has changed: nothing happens
        (folder / "model" / "weights").unlink()
        os.rename(folder, tmp_path / "gone")
        assert complete(server, "a").status == 200


def test_stopping_refuses_the_new_ends_the_rest_and_leaves_no_process() -> None:
    with serving("book", stop_seconds=1.0) as server:
        pid = server.state.models.find("book").child.process.pid
        short, long = begun(server, "<slow:0.05>", tokens=10), begun(server, "<slow:0.05>", tokens=1000)
        server.state.stopping = True
        assert complete(server, "a").status == 503 and server.ask("GET", "/health").status == 503
        ending = threading.Thread(target=lambda: server.__exit__())
        ending.start()
        assert b"[DONE]" in rest(short)
        assert b'"code": "aborted"' in rest(long)
        ending.join()
        assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
