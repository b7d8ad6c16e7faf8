"""Code shared by the benchmarks: interleaved timing of several contenders, hardware limits, our training update.

Contenders take turns in every round, in rotating order, so that a temporary slowdown of the machine affects all of
them. The best turn is reported, because other processes can only add time, together with the median over the rounds of
the per-round ratio: if the two disagree, the machine was too busy for a reliable measurement.
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

VOCABULARY = 65  # distinct characters in tiny Shakespeare

Contender = Callable[[], object]
Turns = dict[str, list[float]]  # seconds per call in each round


def race(contenders: Mapping[str, Contender], rounds: int, turn: float, seconds: float = math.inf) -> Turns:
    """Run each contender for about `turn` seconds (or one call, if that takes longer) in every round.

    No new round starts after `seconds`, but there are always at least two if `rounds` allows.
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
    """Our speedup over `theirs`, best turn against best turn."""
    return min(turns[theirs]) / min(turns[ours])


def median_ratio(turns: Turns, ours: str, theirs: str) -> float:
    """Our speedup over `theirs`, as the median over the rounds."""
    return statistics.median(b / a for a, b in zip(turns[ours], turns[theirs], strict=True))


class Elsewhere:
    """A contender in its own process, isolated from the memory and global settings of the others.

    `python`: a different interpreter, for a library that needs other package versions.
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
    """Receive a number of calls, run them and send back the seconds per call; stop at 0."""
    torch.set_num_threads(threads)
    run = build(*arguments)
    while calls := connection.recv():
        connection.send(_seconds(run, calls))


def _calls(run: Contender, turn: float) -> int:
    """Calls per turn. The first call includes allocation, so a second one is timed, unless the first was too long."""
    if _seconds(run, 1) > 2 * turn:
        return 1
    return max(1, math.ceil(turn / _seconds(run, 1)))


def _seconds(run: Contender, calls: int) -> float:
    """Seconds per call. A contender with untimed setup in each call provides its own `seconds` method."""
    own_clock: Callable[[int], float] | None = getattr(run, "seconds", None)
    if own_clock is not None:
        return own_clock(calls)
    started = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - started) / calls


class MatmulLimit:
    """Peak compute: floating-point operations per second in one large float32 matrix product."""

    unit = "GFLOP/s"

    def __init__(self, size: int = 2048) -> None:
        self.left, self.right, self.out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
        self.work = 2 * size**3

    def __call__(self) -> None:
        torch.mm(self.left, self.right, out=self.out)


class ReadLimit:
    """Read bandwidth: bytes per second when summing a buffer, from main memory if it is much larger than the caches."""

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
    """The real Trainer.update, including everything a training run does in it."""
    options = {"optimizer": "adamw", "rate": 1e-3, "schedule": "constant", "warmup": 0, "device": "cpu"}
    config = TrainConfig.model_validate({**options, "compile": compiled})
    trainer = Trainer(model, task, config, Engine(config), RunFolder(folder), Silent())
    trainer.model.train()
    return lambda batch: trainer.update([batch], [])


def weight_bytes(model: nn.Module) -> int:
    """Bytes of weights read per decoding step: all except embedding tables, where only single rows are looked up."""
    parts = [part for part in model.modules() if not isinstance(part, nn.Embedding)]
    return sum(t.nbytes for part in parts for t in (*part.parameters(recurse=False), *part.buffers(recurse=False)))


def describe_machine(*libraries: str) -> dict[str, Any]:
    """The hardware and library versions used for the measurement."""
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
    """The processor's name, as reported by the operating system."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cache_bytes() -> int | None:
    """Size of the largest processor cache; None if the operating system does not report it."""
    files = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    return max((int(file.read_text().strip().removesuffix("K")) * 1024 for file in files), default=None)


def gpt_flops(width: int, depth: int, length: int, vocabulary: int) -> int:
    """FLOPs per training token: 6 per weight in a matrix product, plus causal attention over length / 2 on average.

    Attention: scores and weighted sum take 2 x 2 x width x length / 2 per layer forward, and twice that backward.
    """
    return 6 * (12 * depth * width * width + width * vocabulary) + 6 * depth * width * length


def recurrent_flops(gates: int, width: int, vocabulary: int) -> int:
    """FLOPs per training token of a one-layer model: 6 per weight in a matrix product."""
    return 6 * (2 * gates * width * width + width * vocabulary)
