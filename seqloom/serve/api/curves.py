"""The curve of a run: losses during training and scores on the validation set, at a bounded number of points."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from seqloom.core.rows import Json
from seqloom.runs.regular import open_regular

Point = tuple[float, float]  # step, value

MOST = 2000  # points
_VALID = 500  # of them
_BYTES = 512 << 20  # of a log that are read


def curve(log: Path, metric: str) -> Json:
    """`train` and `valid` have a value or null for each of `steps`; `valid` is the score `metric`."""
    train: list[Point] = []
    valid: list[Point] = []
    for entry in _entries(log):
        for part, name, into in (("train", "loss", train), ("valid", metric, valid)):
            scores = entry.get(part)
            value, step = scores.get(name) if isinstance(scores, dict) else None, entry.get("step")
            if _is_number(value) and _is_number(step):
                into.append((step, value))
    valid = thinned(valid, _VALID)
    train = thinned(train, MOST - len(valid))
    steps = sorted({step for step, _ in (*train, *valid)})
    trained, judged = dict(train), dict(valid)
    return {
        "metric": metric,
        "steps": steps,
        "train": [trained.get(step) for step in steps],
        "valid": [judged.get(step) for step in steps],
    }


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many: of each stretch the lowest and the highest, so that no spike is lost, and both ends."""
    if len(points) <= most:
        return list(points)
    inner, stretches = points[1:-1], (most - 2) // 2
    kept = [points[0]]
    for number in range(stretches):
        part = inner[number * len(inner) // stretches : (number + 1) * len(inner) // stretches]
        kept += sorted({min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])})
    return [*kept, points[-1]]


def _entries(log: Path) -> Iterator[Json]:
    """The whole lines of a log; what is no JSON is passed over."""
    try:
        with open_regular(log) as file:
            for line in file.readlines(_BYTES):
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(entry, dict):
                    yield entry
    except OSError:
        return


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
