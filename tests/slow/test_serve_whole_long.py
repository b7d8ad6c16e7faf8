"""The whole server over real models, for long and with many clients: leaks, mixed answers, swaps, training beside."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from serve_process import GOLDEN, ROOT, Served, settled
from serve_toys import until
from support import digest, text

SECONDS = float(os.environ.get("SEQLOOM_LEAK_SECONDS", "60"))

WATCH = """
import select, sys, time
from http.client import HTTPConnection
times = []
while not select.select([sys.stdin], [], [], 0.02)[0]:
    started = time.monotonic()
    wire = HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    wire.request("GET", "/health")
    assert wire.getresponse().status == 200
    wire.close()
    times.append(time.monotonic() - started)
print(sorted(times)[int(0.99 * len(times))])
"""  # a process of its own: the threads of 500 clients would count as well


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    found = Served(tmp_path, ["language_model", "classification"])
    yield found
    assert found.stop() == 0


def stream(server: Served, prompt: str, tokens: int) -> dict[str, Any]:
    """How long until the first byte, and what came."""
    started = time.monotonic()
    found = server.model("language_model", "generate", prompt=prompt, max_new=tokens, temperature=0)
    version = found.headers.get("x-seqloom-version")
    return {"status": found.status, "events": found.events(), "seconds": time.monotonic() - started, "version": version}


def said(found: dict[str, Any]) -> str:
    return "".join(event.get("text", "") for event in found["events"][:-1])


def test_five_hundred_clients_each_get_their_own_text(server: Served) -> None:
    prompts = [f"{word} {number}" for number in range(125) for word in ("the cat", "a", "hello there", "wo")]
    alone = {prompt: said(stream(server, prompt, 50)) for prompt in prompts[:40]}
    before = server.resident()
    words = [sys.executable, "-c", WATCH, str(server.port)]
    watcher = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started = time.monotonic()
    with ThreadPoolExecutor(500) as pool:
        found = list(pool.map(lambda prompt: stream(server, prompt, 50), prompts))
    seconds = time.monotonic() - started
    slow = float(watcher.communicate()[0])
    assert {each["status"] for each in found} == {200}
    texts = {prompt: said(each) for prompt, each in zip(prompts, found, strict=True)}
    assert all(texts[prompt] == alone[prompt] for prompt in alone)
    grown = (settled(server.resident) - before) / 1e6
    print(f"500 of 500 in {seconds:.1f} s, +{grown:.0f} MB, health p99 {1000 * slow:.0f} ms")
    assert grown < 100


def test_nothing_leaks(server: Served) -> None:
    """A minute; SEQLOOM_LEAK_SECONDS=1800 for half an hour. At most 1 MB a minute, in every process."""
    until_ = time.monotonic() + SECONDS
    upload = server.upload("rows.csv", b"text\n" + b"good morning\n" * 50).json()["id"]

    def client() -> int:
        count = 0
        while time.monotonic() < until_:
            server.text("the cat", 10)
            server.model("classification", "predict", upload=upload)
            server.model("classification", "explain", text=f"good morning {count % 7}")
            server.ask("GET", "/api/runs")
            server.ask("GET", "/nosuch")
            count += 5
        return count

    def sizes() -> dict[int, int]:
        page = resource.getpagesize()
        family = [server.process.pid, *server.children]
        return {pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in family}

    with ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client) for _ in range(3)]
        time.sleep(SECONDS / 3)  # caches are full, pages of explanations at their number
        first, handles, started = sizes(), server.handles(), time.monotonic()
        requests = sum(each.result() for each in clients)
    minutes = (time.monotonic() - started) / 60
    slopes = {pid: (size - first[pid]) / 1e6 / minutes for pid, size in sizes().items() if pid in first}
    print(f"{requests:,} requests; MB a minute: {', '.join(f'{slope:.2f}' for slope in slopes.values())}")
    assert sizes().keys() == first.keys() and abs(int(settled(server.handles)) - handles) <= 5
    assert max(slopes.values()) <= max(1.0, 3 / minutes)  # an allocator rounds up once, whatever the time


def test_a_model_is_swapped_twenty_times_under_load(server: Served) -> None:
    place, stop = server.folder / "runs" / "language_model", threading.Event()
    found = list[dict[str, Any]]()

    def client() -> None:
        while not stop.is_set():
            found.append(stream(server, "a", 20))

    clients = [threading.Thread(target=client) for _ in range(10)]
    for each in clients:
        each.start()
    seen = set[str]()
    for swap in range(20):
        before = server.ask("GET", "/api/server").json()["models"][0]["version"]
        seen.add(before)
        shutil.rmtree(place)
        shutil.copytree(GOLDEN / ("counting", "language_model")[swap % 2], place)
        server.process.send_signal(signal.SIGHUP)
        assert until(
            lambda before=before: server.ask("GET", "/api/server").json()["models"][0]["version"] != before, 60
        )
    stop.set()
    for each in clients:
        each.join()
    texts: dict[str, set[str]] = {}
    for each in found:
        texts.setdefault(each["version"], set()).add(said(each))
    assert {each["status"] for each in found} == {200} and len(found) >= 200
    assert not [event for each in found for event in each["events"] if "error" in event]
    assert texts.keys() <= seen and all(len(kinds) == 1 for kinds in texts.values())
    print(f"{len(found):,} streams over 20 swaps of {len(texts)} versions")


def test_training_beside_serving_is_bit_for_bit_what_it_is_alone(server: Served, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(6000))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SEQLOOM_CACHE": str(tmp_path / "cache")}

    def train(name: str) -> str:
        words = [sys.executable, "-m", "seqloom", "fit", "--task=language_model", "--data=book.txt", "--model=gru"]
        words += [f"--out={name}", "-o", "train.steps=60", "-o", "train.threads=1"]
        subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
        return digest(tmp_path / name)

    quiet = [stream(server, "the", 50)["seconds"] for _ in range(40)]
    alone = train("alone")
    busy, stop = list[float](), threading.Event()

    def client() -> None:
        while not stop.is_set():
            busy.append(stream(server, "the", 50)["seconds"])

    clients = [threading.Thread(target=client) for _ in range(20)]
    for each in clients:
        each.start()
    idle = len(busy)
    time.sleep(5)
    served = sorted(busy[idle:])
    busy.clear()
    beside = train("beside")
    stop.set()
    for each in clients:
        each.join()
    assert alone == beside
    p99 = [1000 * sorted(times)[int(0.99 * len(times))] for times in (quiet, served, busy)]
    print("p99 of a stream of 50 tokens: {:.0f} ms alone, {:.0f} ms of 20, {:.0f} ms beside training".format(*p99))
