"""How many seeds would tell two models apart, if they differ by as much as was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqloom.lab.rules import MOST_SEEDS
from seqloom.lab.statistics import Error, Sample, blocks, difference, per_pair

POWER = 0.8  # probability of finding the difference with the estimated number of seeds


@dataclass(frozen=True)
class Needed:
    """`seeds` per model; None: no number of seeds is enough, because of what `limit` names."""

    seeds: int | None
    limit: Literal["difference", "tuning", "pieces", "fixed"] | None = None


def seeds_needed(a: Sample, b: Sample, models: int, level: float) -> Needed:
    """For a verdict at this level among so many models. Seeds reduce neither the luck of tuning nor the variation of
    the difference over the test data."""
    gap, error = difference(a, b)
    random = [sample for sample in (a, b) if not sample.fixed]
    if not gap or error.none:
        return Needed(None, "difference")
    if not random:
        return Needed(None, "fixed")
    seeds = sum(float(np.var(sample.scores.mean(axis=1), ddof=1)) for sample in random)
    interaction = sum(_interaction(sample) for sample in random)
    paired = blocks(a.scores).mean(axis=0) - blocks(b.scores).mean(axis=0)
    spread = float(np.var(paired, ddof=1)) / len(paired) if len(paired) > 1 else 0.0
    pieces = max(0.0, spread - sum(_interaction(sample) / len(sample.scores) for sample in random))
    tuning = a.tuning + b.tuning
    for count in range(2, MOST_SEEDS + 1):
        luck = ((seeds + interaction) / count + tuning, len(random) * (count - 1.0))
        then = Error(luck, (pieces, max(1.0, len(paired) - 1.0)))
        if abs(gap) >= then.reach(per_pair(level, models)) + then.reach(2 * (1 - POWER)):
            return Needed(count)
    return Needed(None, "tuning" if tuning > pieces else "pieces")


def _interaction(sample: Sample) -> float:
    """Contribution of the seed-by-piece interaction to the variance of one seed's mean over pieces."""
    table = blocks(sample.scores)
    seeds, pieces = table.shape
    if pieces < 2 or seeds < 2:
        return 0.0
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    found: float = float((rest**2).sum()) / ((seeds - 1) * (pieces - 1)) / pieces
    return found
