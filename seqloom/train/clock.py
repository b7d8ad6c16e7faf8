"""The clock that a budget in seconds is counted by.

`wall`: elapsed time. `cpu`: CPU time of the thread that trains, which other programs on the machine do not lengthen.
On an idle machine both are about the same, also with several threads: the training thread does its share of every
parallel part and all of the serial ones. (The CPU time of all threads, divided by their number, would not do: on a busy
machine threads that wait for each other may spin, and count several times the work.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

Kind = Literal["wall", "cpu"]


class Lap(NamedTuple):
    seconds: float  # by the chosen clock
    wall: float


class Clock:
    def __init__(self, kind: Kind, device: str = "cpu") -> None:
        """On a GPU the thread that trains mostly waits, so `cpu` counts elapsed time there."""
        self._read: Callable[[], float] = time.thread_time if kind == "cpu" and device == "cpu" else time.perf_counter
        self.restart()

    def restart(self) -> None:
        """Leave out the time since the last lap."""
        self._seconds, self._wall = self._read(), time.perf_counter()

    def lap(self) -> Lap:
        """Time since the last lap or restart."""
        before = self._seconds, self._wall
        self.restart()
        return Lap(self._seconds - before[0], self._wall - before[1])
