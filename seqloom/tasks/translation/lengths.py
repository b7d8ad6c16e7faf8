"""The length penalty of beam search, chosen on the validation set.

Models differ in how early they end a text: some write too little with a penalty of 1, some too much. A few values are
tried in the direction that helps, and each is a search of its own, because it also decides when a search stops.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from seqloom.core.choice import Choice
from seqloom.core.score import Score

SOURCES = 200  # of the validation set, on which every value is tried: enough for what matters, and decoded in seconds
_VALUES = (0.4, 0.7, 1.0, 1.4, 2.0, 2.8)


def best_penalty(score: Callable[[float], float]) -> tuple[float, dict[float, float]]:
    """The value with the highest score that is reached from 1 without a step down, and all scores seen on the way."""
    start = _VALUES.index(1.0)
    seen = {1.0: score(1.0)}
    for values in (_VALUES[start:], _VALUES[start::-1]):
        for value, following in pairwise(values):
            seen[following] = score(following)
            if seen[following] <= seen[value]:
                break
        best = max(seen, key=seen.__getitem__)
        if best != 1.0:
            return best, seen
    return 1.0, seen


def tuned(main: Score, score: Callable[[float], float], sources: int) -> Choice:
    """The choice by the main score of the outputs for this many sources, with what was seen as its reason."""
    sign = 1.0 if main.higher_is_better else -1.0
    best, seen = best_penalty(lambda value: sign * score(value))
    tried = ", ".join(f"{value:g}: {sign * seen[value]:.1f}" for value in sorted(seen))
    return Choice("task.length_penalty", best, f"{main.title[0]} on {sources} validation sources: {tried}")
