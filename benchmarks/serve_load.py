"""A server under load: many streams, twice its cap, clients that leave, a killed model process, a stop while busy.

    python benchmarks/serve_load.py [--cases streams,overload,...] [--streams 500] [--new 50] [--out FILE]

Two tiny language models (gpt, gru) are trained on a built-in text, and `seqloom serve` runs as a user would start it.
The clients are one process with one connection each; all times are theirs, on the same machine. Every answer is
compared with the one that the same request got alone. `--quick` only checks that it runs: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import psutil

MODELS = ("gpt", "gru")
Case = Callable[["Served", argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    token: str

    def family(self) -> list[psutil.Process]:
        front = psutil.Process(self.process.pid)
        return [front, *front.children(recursive=True)]

    def memory(self) -> float:
        """MB of the server and its model processes."""
        return sum(each.memory_info().rss for each in self.family()) / 2**20

    def holding(self, model: str) -> psutil.Process:
        """The process that holds this model: the workers start in the order of the models."""
        workers = sorted(self.family()[1:], key=lambda each: each.create_time())
        return workers[MODELS.index(model)]


@dataclass
class Answer:
    status: int = 0
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    first: float = 0.0  # seconds until the first token
    seconds: float = 0.0  # until the end, or until the status if it is an error
    whole: bool = False  # the stream ended with [DONE]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--new", type=int, default=50, help="tokens per stream")
    parser.add_argument("--threads", help="of each model process; default: the server's")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    if options.quick:
        options.streams, options.new = 8, 5
    report: dict[str, Any] = {"streams": options.streams, "new": options.new, "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        runs = train(Path(folder), 3 if options.quick else 150)
        for case in options.cases.split(","):
            with serving(runs, Path(folder), options.threads) as served:
                found = asyncio.run(CASES[case](served, options))
            report["cases"][case] = found
            print(f"{case}\n" + "".join(f"  {name:34} {show(value)}\n" for name, value in found.items()), flush=True)
    if options.out:
        common.write_json(options.out, report)


def show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def train(folder: Path, steps: int) -> list[Path]:
    for name in MODELS:
        settings = ["-o", f"train.steps={steps}", "-o", "model.width=128", "-o", "train.threads=2"]
        words = ["fit", "--task", "language_model", "--data", "sample:python-docs", "--model", name]
        command = [sys.executable, "-m", "seqloom", *words, "--out", str(folder / name), *settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [folder / name for name in MODELS]


@contextmanager
def serving(runs: list[Path], folder: Path, threads: str | None) -> Iterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = folder / "token"
    command = [sys.executable, "-m", "seqloom", "serve", *map(str, runs), "--port", str(port)]
    command += ["--token-file", str(token), "--runs", str(folder), *(["--threads", threads] if threads else [])]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: healthy(port), 120)
        yield Served(process, port, token.read_text().strip())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def until(ready: Callable[[], bool], seconds: float) -> float:
    """Seconds until it holds."""
    started = time.perf_counter()
    while not ready():
        if time.perf_counter() - started > seconds:
            raise SystemExit(f"not within {seconds} s")
        time.sleep(0.02)
    return time.perf_counter() - started


def healthy(port: int) -> bool:
    try:
        return asyncio.run(get(port, "/health", "")).status == 200
    except OSError:
        return False


async def get(port: int, path: str, token: str) -> Answer:
    return await exchange(port, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", token, b"")


async def stream(served: Served, model: str, n: int, options: argparse.Namespace, leave: int = 0) -> Answer:
    """One completion; `leave`: the client closes the connection after so many pieces."""
    said: dict[str, Any] = {"model": model, "prompt": prompt(n), "max_tokens": options.new, "stream": True}
    body = json.dumps(said | {"temperature": 0.8, "seed": n}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Type: application/json\r\n"
    return await exchange(served.port, head + f"Content-Length: {len(body)}\r\n", served.token, body, leave)


def prompt(n: int) -> str:
    """Of different lengths, and no two alike."""
    return f"{n} returns " + "a list of " * (n % 7)


async def exchange(port: int, head: str, token: str, body: bytes, leave: int = 0) -> Answer:
    started, answer = time.perf_counter(), Answer()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        bearer = f"Authorization: Bearer {token}\r\n" if token else ""
        writer.write(f"{head}{bearer}Connection: close\r\n\r\n".encode() + body)
        answer.status = int((await reader.readline()).split()[1])
        answer.headers = await headers(reader)
        while line := await reader.readline():
            if line.startswith(b"data: [DONE]"):
                answer.whole = True
            elif line.startswith(b"data: {"):
                answer.first = answer.first or time.perf_counter() - started
                choices = json.loads(line[6:]).get("choices") or [{}]
                answer.text += choices[0].get("text") or ""
                leave -= 1
                if leave == 0:
                    return answer
    finally:
        answer.seconds = time.perf_counter() - started
        writer.close()
    return answer


async def headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        found[name.lower()] = value.strip()
    return found


async def alone(served: Served, model: str, count: int, options: argparse.Namespace) -> list[str]:
    return [(await stream(served, model, n, options)).text for n in range(count)]


async def together(calls: list[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    found = await asyncio.gather(*calls, return_exceptions=True)
    return [each if isinstance(each, Answer) else Answer(text=repr(each)) for each in found]


async def many_streams(served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """500 at once, on each model."""
    found: dict[str, Any] = {}
    for model in MODELS:
        solo = await alone(served, model, options.streams, options)
        before, peak, health, over = served.memory(), 0.0, [], asyncio.Event()

        async def watch(over: asyncio.Event = over, health: list[float] = health) -> float:
            most = 0.0
            while not over.is_set():
                health.append((await get(served.port, "/health", "")).seconds)
                most = max(most, served.memory())
                await asyncio.sleep(0.05)
            return most

        watching = asyncio.create_task(watch())
        started = time.perf_counter()
        answers = await together([stream(served, model, n, options) for n in range(options.streams)])
        seconds = time.perf_counter() - started
        over.set()
        peak = await watching
        found |= {
            f"{model}: complete": sum(a.whole and a.status == 200 for a in answers),
            f"{model}: equal to alone": sum(a.text == text for a, text in zip(answers, solo, strict=True)),
            f"{model}: seconds": seconds,
            f"{model}: first token, p99": at([a.first for a in answers], 0.99),
            f"{model}: health, p99": at(health, 0.99),
            f"{model}: memory, MB more": peak - before,
        }
    return found


def at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


async def overload(served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """Twice the cap at once, five times, and a single request after it."""
    limits = json.loads(await page(served, "/api/server"))["limits"]
    cap = int(limits["in_flight"] + limits["queue"])
    alone_before = min([(await stream(served, "gru", 1, options)).seconds for _ in range(5)])
    served_each, refused, late, resets, retry = [], [], [], 0, 0
    for _ in range(1 if options.quick else 5):
        answers = await together([stream(served, MODELS[n % 2], n, options) for n in range(2 * cap)])
        served_each.append(sum(a.status == 200 and a.whole for a in answers))
        no = [a for a in answers if a.status == 503]
        refused.append(len(no))
        late += [a.seconds for a in no]
        retry += sum("retry-after" in a.headers for a in no)
        resets += sum(a.status not in (200, 503) for a in answers)
    alone_after = min([(await stream(served, "gru", 1, options)).seconds for _ in range(5)])
    return {
        "cap": cap,
        "served": served_each,
        "refused with 503": refused,
        "of these with Retry-After": retry,
        "neither": resets,
        "seconds to the last 503": max(late, default=0.0),
        "a single request, after to before": alone_after / alone_before,
    }


async def page(served: Served, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text[text.index("{") : text.rindex("}") + 1]


async def leaving(served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """Half of the clients leave after their first token."""
    long = argparse.Namespace(new=20 * options.new)
    solo = await alone(served, "gpt", 5, options)
    started = time.perf_counter()
    stay = [stream(served, "gpt", n, options) for n in range(options.streams // 2)]
    leave = [stream(served, "gru", n, long, leave=1) for n in range(options.streams // 2)]
    answers = await together([*leave, *stay])
    took = time.perf_counter() - started
    idle = await quiet(served)
    staying = answers[len(leave) :]
    return {
        "left after the first token": sum(a.first > 0 for a in answers[: len(leave)]),
        "of the others complete": sum(a.whole for a in staying),
        "and equal to alone (of 5)": sum(a.text == text for a, text in zip(staying, solo, strict=False)),
        "seconds for all": took,
        "seconds until the processes are idle": idle,
    }


async def quiet(served: Served) -> float:
    """Seconds until the model processes use less than a tenth of a core."""
    started = time.perf_counter()
    while time.perf_counter() - started < 30:
        before = sum(sum(each.cpu_times()[:2]) for each in served.family())
        await asyncio.sleep(0.2)
        after = sum(sum(each.cpu_times()[:2]) for each in served.family())
        if after - before < 0.02:
            return time.perf_counter() - started - 0.2
    return float("inf")


async def killed(served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """kill -9 of a model process under 50 clients."""
    long = argparse.Namespace(new=10 * options.new)
    clients = asyncio.gather(*[together([stream(served, "gru", n, long)]) for n in range(50)])
    await asyncio.sleep(0.3)
    served.holding("gru").kill()
    at_kill = time.perf_counter()
    below, back = 0, float("inf")
    while time.perf_counter() - at_kill < 30:
        below += (await get(served.port, "/health", "")).status != 200
        if below and (await stream(served, "gru", 1, argparse.Namespace(new=2))).whole:
            back = time.perf_counter() - at_kill
            break
        await asyncio.sleep(0.02)
    answers = [found for (found,) in await asyncio.wait_for(clients, 60)]
    return {
        "clients that got an end": len(answers),
        "ended whole, by an error, by a 503": [
            sum(a.whole for a in answers),
            sum(a.status == 200 and not a.whole for a in answers),
            sum(a.status == 503 for a in answers),
        ],
        "health said no meanwhile": below > 0,
        "seconds until the service is back": back,
    }


async def stopped(served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """SIGTERM with 50 streams."""
    long = argparse.Namespace(new=100 * options.new)
    family = served.family()
    clients = asyncio.gather(*[together([stream(served, "gru", n, long)]) for n in range(50)])
    await asyncio.sleep(0.5)
    started = time.perf_counter()
    os.kill(served.process.pid, signal.SIGTERM)
    await asyncio.sleep(0.05)
    (late,) = await together([stream(served, "gru", 1, options)])
    answers = [found for (found,) in await asyncio.wait_for(clients, 60)]
    code = await asyncio.to_thread(served.process.wait, 60)
    seconds = time.perf_counter() - started
    return {
        "new request": late.status or late.text,
        "streams that got an end": len(answers),
        "seconds until exit": seconds,
        "exit code": code,
        "processes left": sum(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family[1:]),
    }


CASES: dict[str, Case] = {
    "streams": many_streams,
    "overload": overload,
    "leaving": leaving,
    "killed": killed,
    "stopped": stopped,
}


if __name__ == "__main__":
    main()
