"""Timing by turns: what is compared is timed in short alternating turns, until the fastest times of each agree.

The fastest time is what the machine can do; anything above it is something else that ran. One fast turn may be luck, so
a figure is stable when several turns came close to the fastest. Short turns vary more, so they are more in number. What
does not settle within the limits is reported all the same, and marked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

CLOSE = 0.05  # times agree within this share
AGREEING = 3  # turns that have to agree with the fastest
LEAST, MOST = 8, 48  # turns
LONG = 0.1  # seconds: turns that take as long together are enough, if those that have to agree are among them

Key = TypeVar("Key")
Turn = Callable[[], float]  # seconds


@dataclass
class Times:
    """The turns that one contender has had."""

    taken: list[float] = field(default_factory=list)
    agreeing: int = AGREEING

    @property
    def fastest(self) -> float:
        return min(self.taken)

    @property
    def stable(self) -> bool:
        near = sorted(self.taken)[: self.agreeing]
        return len(near) == self.agreeing and near[-1] <= (1 + CLOSE) * near[0]


def take_turns(
    turns: Mapping[Key, Turn],
    seconds: float,
    chains: Sequence[Sequence[Key]] = (),
    least: int = LEAST,
    most: int = MOST,
    agreeing: int = AGREEING,
) -> dict[Key, Times]:
    """Rounds of one turn each: `least` for all, or fewer where a turn is long; then for those that are not settled, up
    to `most` and while all turns together fit into `seconds`.

    `chains`: contenders of which each does all the work of the one before and more, so it cannot be faster. Where it
    seems to be, neither is settled.
    """
    times = {key: Times(agreeing=agreeing) for key in turns}
    spent = 0.0
    for _ in range(most):
        waiting = [key for key, each in times.items() if len(each.taken) < enough(each.taken, least, agreeing)]
        if not waiting:
            doubtful = unsettled(times, chains)
            waiting = [key for key in times if key in doubtful]
            if spent + sum(times[key].fastest for key in waiting) > seconds:
                break
        for key in waiting:
            took = turns[key]()
            times[key].taken.append(took)
            spent += took
    return times


def enough(taken: Sequence[float], least: int = LEAST, agreeing: int = AGREEING) -> int:
    """The number of turns that one gets in any case, after these."""
    return min(least, max(agreeing, math.ceil(LONG / max(min(taken), 1e-9)))) if taken else least


def unsettled(times: Mapping[Key, Times], chains: Sequence[Sequence[Key]] = ()) -> set[Key]:
    """Those whose fastest turns disagree, or that contradict a neighbour in a chain."""
    found = {key for key, each in times.items() if not each.stable}
    for chain in chains:
        for less, more in pairwise(chain):
            if times[more].fastest < (1 - CLOSE) * times[less].fastest:
                found |= {less, more}
    return found
