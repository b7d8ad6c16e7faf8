"""Time for studies of cost: contenders take turns, and the fastest turn of each counts, because whatever else runs on a
machine only adds time."""

from __future__ import annotations

import platform
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch

from seqloom.lab.turns import take_turns
from seqloom.train.clock import Clock

AGREEING = 3  # turns that everything has, however long one takes

Key = TypeVar("Key", bound=Hashable)


def fastest(turns: Mapping[Key, Callable[[], float]], rounds: int) -> dict[Key, float]:
    """Seconds of the fastest of so many turns of each; fewer where a turn is long."""
    for turn in turns.values():
        turn()  # allocates what later turns reuse
    agreeing = min(rounds, AGREEING)
    return {key: times.fastest for key, times in take_turns(turns, 0.0, (), rounds, rounds, agreeing).items()}


def timed(
    run: Callable[..., object], prepare: Callable[[], object] | None = None, *, elapsed: bool = False
) -> Callable[[], float]:
    """Seconds that it takes, with what `prepare` returns, which is not counted: CPU time with one thread, which other
    programs do not lengthen, else elapsed time; always that, to compare numbers of threads."""

    def turn() -> float:
        given = () if prepare is None else (prepare(),)
        clock = Clock("cpu" if torch.get_num_threads() == 1 and not elapsed else "wall")
        run(*given)
        return clock.lap().seconds

    return turn


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def processor() -> str:
    """Its name, as the operating system reports it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
