"""What the benchmarks share: a race of several contenders, the machine's limits, and the work a model needs.

Contenders take turns, round by round: what slows the machine for a while slows them all. The order rotates, and the
best turn counts, because other programs can only add time. The median over the rounds of the ratio within a round
stands beside it: where the two disagree, the machine was too busy to say.
"""

from __future__ import annotations

import math
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

Contender = Callable[[], object]
Turns = dict[str, list[float]]  # seconds of one call, for each round


def race(contenders: Mapping[str, Contender], rounds: int, turn: float) -> Turns:
    """Let each contender run for about `turn` seconds (one call, if that takes longer) in every round."""
    names = list(contenders)
    calls = {}
    for name, run in contenders.items():
        run()  # the first call allocates
        calls[name] = max(1, math.ceil(turn / _seconds(run, 1)))
    turns: Turns = {name: [] for name in names}
    for n in range(rounds):
        first = n % len(names)
        for name in names[first:] + names[:first]:
            turns[name].append(_seconds(contenders[name], calls[name]))
    return turns


def best_ratio(turns: Turns, ours: str, theirs: str) -> float:
    """How many times faster we are, best turn against best turn."""
    return min(turns[theirs]) / min(turns[ours])


def median_ratio(turns: Turns, ours: str, theirs: str) -> float:
    """How many times faster we are in the round in the middle."""
    return statistics.median(b / a for a, b in zip(turns[ours], turns[theirs], strict=True))


class Elsewhere:
    """A contender in a process of its own, where nothing that others did or set can help or hinder it."""

    def __init__(self, build: Callable[..., Contender], *arguments: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, there = spawn.Pipe()
        self.process = spawn.Process(
            target=_serve, args=(there, torch.get_num_threads(), build, arguments), daemon=True
        )
        self.process.start()

    def __call__(self) -> None:
        self.seconds(1)

    def seconds(self, calls: int) -> float:
        self.connection.send(calls)
        return self.connection.recv()

    def close(self) -> None:
        self.connection.send(0)
        self.process.join()


def _serve(connection: Connection, threads: int, build: Callable[..., Contender], arguments: tuple[Any, ...]) -> None:
    """Answer a number of calls with the seconds that one of them took, until the number is 0."""
    torch.set_num_threads(threads)
    run = build(*arguments)
    while calls := connection.recv():
        connection.send(_seconds(run, calls))


def _seconds(run: Contender, calls: int) -> float:
    """Of one call, as timed where it happens."""
    if isinstance(run, Elsewhere):
        return run.seconds(calls)
    started = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - started) / calls


class MatmulLimit:
    """One large product of float32 matrices: floating-point operations per second."""

    unit = "GFLOP/s"

    def __init__(self, size: int = 2048) -> None:
        self.left, self.right, self.out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
        self.work = 2 * size**3

    def __call__(self) -> None:
        torch.mm(self.left, self.right, out=self.out)


class ReadLimit:
    """Sum a buffer: bytes read per second; from memory when the buffer is well beyond the caches."""

    unit = "GB/s"

    def __init__(self, size: int = 256_000_000) -> None:
        self.buffer = torch.ones(size // 4)
        self.work = self.buffer.nbytes

    def __call__(self) -> None:
        self.buffer.sum()


def processor() -> str:
    """Its name, as well as the system knows it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cache_bytes() -> int | None:
    """The processor's largest cache; None where the system does not tell."""
    files = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    return max((int(file.read_text().strip().removesuffix("K")) * 1024 for file in files), default=None)


def gpt_flops(width: int, depth: int, length: int, vocabulary: int) -> int:
    """Per token of training: 6 per weight that is multiplied, and attention over half of the length on average.

    Attention: scores and mixture take 2 x 2 x width x length / 2 forward; backward takes twice that.
    """
    return 6 * (12 * depth * width * width + width * vocabulary) + 6 * depth * width * length


def recurrent_flops(gates: int, width: int, vocabulary: int) -> int:
    """Per token of training, one layer: 6 per weight that is multiplied."""
    return 6 * (2 * gates * width * width + width * vocabulary)
