"""What a search found, and what more of it would be expected to find.

The expected best score after n trials is the mean, over all choices of n of the trials that were made, of the best one
among them: the unbiased version (Tang et al. 2020) of what Dodge et al. (2019, "Show Your Work") propose. It ends at
the best score found. Its interval comes from resampling the trials. Trials are treated as independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seqloom.core.rows import Json
from seqloom.lab import search

_RESAMPLES, _SEED = 2000, 0


def tuning(trials: Sequence[Json], pinned: set[str], higher: bool, confidence: float) -> Json:
    """`trials`: with their `settings`, `state`, `score` and, where pruned, `last` score."""
    tried = [(trial["settings"], trial["score"] if trial["state"] == "done" else None) for trial in trials]
    return {
        "finished": sum(trial["state"] == "done" for trial in trials),
        "expected": expected_best(_scores(trials, higher), higher, confidence),
        "at_edge": search.edge(tried, pinned, lower=not higher),
    }


def _scores(trials: Sequence[Json], higher: bool) -> list[float]:
    """One per trial: of a pruned one its last, but none better than the best that finished; of a failed one the worst
    of all. Empty if none finished."""
    better, worse = (max, min) if higher else (min, max)
    finished = [trial["score"] for trial in trials if trial["state"] == "done"]
    if not finished:
        return []
    lasts = [trial.get("last") for trial in trials if trial["state"] != "done"]
    pruned = [worse(last, better(finished)) for last in lasts if last is not None]
    worst = worse([*finished, *pruned])
    return finished + pruned + [worst] * lasts.count(None)


def expected_best(scores: Sequence[float], higher: bool, confidence: float) -> list[Json]:
    """For n = 1, 2, ...: the expected best of n trials, and an interval for it; none with a single trial."""
    if not scores:
        return []
    sign = 1.0 if higher else -1.0
    weights = _weights(len(scores))
    values = sign * np.asarray(scores, dtype=float)
    means = weights @ np.sort(values)
    drawn = np.random.default_rng(_SEED).choice(values, (_RESAMPLES, len(values)))
    tail = 50 * (1 - confidence)
    ends = np.percentile(np.sort(drawn, axis=1) @ weights.T, [tail, 100 - tail], axis=0)
    lows, highs = np.sort(sign * ends, axis=0)
    several = len(scores) > 1
    return [
        {"trials": n + 1, "mean": float(sign * means[n])}
        | {"low": float(lows[n]) if several else None, "high": float(highs[n]) if several else None}
        for n in range(len(scores))
    ]


def _weights(count: int) -> np.ndarray:
    """Row n: how likely each score, the worst first, is the best of n + 1 that are drawn without replacement."""
    return np.array([[math.comb(i, n) / math.comb(count, n + 1) for i in range(count)] for n in range(count)])
