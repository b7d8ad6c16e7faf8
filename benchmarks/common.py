"""What the benchmarks share: a race of several contenders, the machine's limits, and our own training update.

Contenders take turns, round by round: what slows the machine for a while slows them all. The order rotates, and the
best turn counts, because other programs can only add time. The median over the rounds of the ratio within a round
stands beside it: where the two disagree, the machine was too busy to say.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn

import seqloom
from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.progress import Silent
from seqloom.core.task import Task
from seqloom.runs.folder import RunFolder
from seqloom.tasks import language_model
from seqloom.train.engine import Engine
from seqloom.train.loop import Trainer
from seqloom.train.settings import TrainConfig

VOCABULARY = 65  # characters of tiny Shakespeare

Contender = Callable[[], object]
Turns = dict[str, list[float]]  # seconds of one call, for each round


def race(contenders: Mapping[str, Contender], rounds: int, turn: float, seconds: float = math.inf) -> Turns:
    """Let each contender run for about `turn` seconds (one call, if that takes longer) in every round.

    After `seconds` no other round begins; two there are always.
    """
    names, ends = list(contenders), time.perf_counter() + seconds
    calls = {name: _calls(run, turn) for name, run in contenders.items()}
    turns: Turns = {name: [] for name in names}
    for n in range(rounds):
        if n >= 2 and time.perf_counter() > ends:
            break
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
    """A contender in a process of its own, where nothing that others did or set can help or hinder it.

    `python`: another interpreter, for a peer that needs other versions.
    """

    def __init__(self, build: Callable[..., Contender], *arguments: Any, python: str = sys.executable) -> None:
        spawn = multiprocessing.get_context("spawn")
        spawn.set_executable(python)
        self.connection, there = spawn.Pipe()
        self.process = spawn.Process(
            target=_serve, args=(there, torch.get_num_threads(), build, arguments), daemon=True
        )
        self.process.start()
        spawn.set_executable(sys.executable)

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


def _calls(run: Contender, turn: float) -> int:
    """How many make up a turn. The first call allocates, so its time says little, unless it is long."""
    if _seconds(run, 1) > 2 * turn:
        return 1
    return max(1, math.ceil(turn / _seconds(run, 1)))


def _seconds(run: Contender, calls: int) -> float:
    """Of one call; a contender that has something to do before it starts the clock does so itself (`seconds`)."""
    own_clock: Callable[[int], float] | None = getattr(run, "seconds", None)
    if own_clock is not None:
        return own_clock(calls)
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


def make_task(vocabulary: int = VOCABULARY) -> language_model.LanguageModel:
    return language_model.LanguageModel(language_model.Config.model_validate({}), vocabulary)


def our_update(model: SequenceModel, batch: Batch, folder: Path, compiled: bool = False) -> Contender:
    update = our_updates(model, make_task(), folder, compiled)
    return lambda: update(batch)


def our_updates(model: SequenceModel, task: Task, folder: Path, compiled: bool = False) -> Callable[[Batch], object]:
    """The trainer's own update, with all that a run does in it."""
    options = {"optimizer": "adamw", "rate": 1e-3, "schedule": "constant", "warmup": 0, "device": "cpu"}
    config = TrainConfig.model_validate({**options, "compile": compiled})
    trainer = Trainer(model, task, config, Engine(config), RunFolder(folder), Silent())
    trainer.model.train()
    return lambda batch: trainer.update([batch], [])


def weight_bytes(model: nn.Module) -> int:
    """What is read of its weights to go one step: all, but for tables, of which a row is looked up."""
    parts = [part for part in model.modules() if not isinstance(part, nn.Embedding)]
    return sum(t.nbytes for part in parts for t in (*part.parameters(recurse=False), *part.buffers(recurse=False)))


def describe_machine(*libraries: str) -> dict[str, Any]:
    """On what, and with which versions, the figures were measured."""
    return {
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "cache bytes": cache_bytes(),
        "python": platform.python_version(),
        "seqloom": seqloom.__version__,
        **{name: version(name) for name in ("torch", *libraries)},
    }


def write_json(file: Path, report: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1) + "\n")


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
