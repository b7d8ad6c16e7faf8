"""What changes with scale: every final run is branched at 1/8, 1/4 and 1/2 of the budget, and a curve is fitted.

DIR/runs/ENTRY/eighth-seed-1, quarter-seed-1, half-seed-1    the rungs of seed-1, each a run folder
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import torch

from seqloom.core.rows import Json, Rows
from seqloom.core.task import AnyTask
from seqloom.lab import statistics
from seqloom.lab.entries import Sized, changed
from seqloom.lab.job import Job, Result
from seqloom.lab.jobs import Jobs
from seqloom.lab.ladder import CONFIDENCE, SURE, TIMES, Curve, Rung, crossing
from seqloom.lab.rungs import RUNGS, cost
from seqloom.train.engine import Engine
from seqloom.train.pace import estimate

LADDERS = ("budget",)
_TOP = 4  # entries of which every pair is compared
_DRAWN = 13  # points of a fitted curve on either side of the full budget

Submit = Callable[[Sequence[Job]], list[Future[Result]]]
Wait = Callable[[Sequence[Future[Result]]], list[Result]]
Course = tuple[Sized, Sequence[Future[Result]]]  # an entry, and its final runs


class Ladder:
    def __init__(self, jobs: Jobs, entries: Sequence[Sized]) -> None:
        self.jobs, self.seeds = jobs, len(jobs.seeds)
        self.extra = cost(entries[0].config.train.decay) - 1

    @property
    def count(self) -> int:
        """Number of further runs per entry."""
        return len(RUNGS) * self.seeds

    @property
    def amount(self) -> float:
        """Their training, in full runs per entry."""
        return self.extra * self.seeds

    def work(self, courses: Sequence[Course], submit: Submit, wait: Wait) -> Json:
        """Train the rungs, seed by seed as the final runs finish; the curves, and the order of every pair."""
        rungs: dict[str, list[list[Future[Result]]]] = {sized.entry.name: [] for sized, _ in courses}
        for place, seed in enumerate(self.jobs.seeds):
            trunks = wait([runs[place] for _, runs in courses])
            for (sized, _), trunk in zip(courses, trunks, strict=True):
                todo = [self.jobs.rung(sized, seed, rung) for rung in range(len(RUNGS))]
                rungs[sized.entry.name].append(submit(todo) if trunk["state"] == "done" else [])
        found = {
            sized.entry.name: self._points(sized, [wait(each) for each in rungs[sized.entry.name]], wait(runs))
            for sized, runs in courses
        }
        return self._fitted({name: points for name, points in found.items() if points})

    def _points(self, sized: Sized, rungs: Sequence[Sequence[Result]], trunks: Sequence[Result]) -> list[Json]:
        """Scores by budget; a rung without any finished run is left out."""
        points = []
        for place, share in enumerate([*(share for _, share in RUNGS), 1.0]):
            runs = trunks if share == 1 else [results[place] if results else None for results in rungs]
            pairs = zip(self.jobs.seeds, runs, strict=True)
            done = [self._run(sized, place, seed, run) for seed, run in pairs if run and run["state"] == "done"]
            if done:
                scores = [run["score"] for run in done]
                points.append({"at": self._at(share), "score": asdict(statistics.interval(scores)), "runs": done})
        return points

    def _at(self, share: float) -> float:
        """In the unit of the budget."""
        amount = share * self.jobs.rules.budget.amount
        return round(amount) if self.jobs.rules.budget.kind == "tokens" else amount

    def _run(self, sized: Sized, place: int, seed: int, result: Result) -> Json:
        name = f"{RUNGS[place][0]}-seed-{seed}" if place < len(RUNGS) else f"seed-{seed}"
        summary = result["summary"]
        return {
            "seed": seed,
            "score": summary["scores"]["test"][self.jobs.task.metric],
            "tokens": summary["tokens"],
            "folder": f"runs/{sized.entry.folder}/{name}",
        }

    def _fitted(self, points: Mapping[str, list[Json]]) -> Json:
        """Curves of all entries, and, of the best ones, who is ahead with a larger budget."""
        scores = [run["score"] for every in points.values() for point in every for run in point["runs"]]
        higher = self.jobs.task.main_score.higher_is_better
        ceiling = (1.0 if max(scores, default=0.0) <= 1 else 100.0) if higher else None
        curves = {
            name: Curve([Rung(point["at"], [run["score"] for run in point["runs"]]) for point in every], ceiling, seed)
            for seed, (name, every) in enumerate(points.items())
        }
        over = self.jobs.rules.budget.kind
        whole = [name for name in points if points[name][-1]["at"] == self._at(1.0)]
        top = sorted(whole, key=lambda n: points[n][-1]["score"]["mean"], reverse=higher)[:_TOP]
        return {
            "over": over,
            "times": list(TIMES),
            "confidence": CONFIDENCE,
            "sure": SURE,
            "full": self._at(1.0),
            "entries": {
                name: {"over": over, "points": every} | _described(curves[name]) for name, every in points.items()
            },
            "pairs": [{"first": a, "second": b} | _pair(curves[a], curves[b]) for a, b in combinations(top, 2)],
        }


def _described(curve: Curve) -> Json:
    if curve.problem:
        return {"fit": None, "problem": curve.problem, "predicted": [], "curve": []}
    start, full, end = curve.rungs[0].at, curve.full, curve.full * TIMES[-1]
    inside, beyond = np.geomspace(start, full, _DRAWN), np.geomspace(full, end, _DRAWN)
    drawn = [asdict(point) | {"low": None, "high": None} for point in curve.band(inside.tolist()[:-1])]
    return {
        "fit": curve.parameters(),
        "predicted": [asdict(point) for point in curve.predict()],
        "curve": drawn + [asdict(point) for point in curve.band(beyond.tolist(), single=True)],
    }


def _pair(first: Curve, second: Curve) -> Json:
    if first.problem or second.problem:
        return {"verdict": "unclear", "ahead": None, "now": None, "later": None, "at": None, "low": None, "high": None}
    return asdict(crossing(first, second))


def tokens_within(
    seconds: float, entries: Sequence[Sized], task: AnyTask, rows: Mapping[str, Rows], threads: int
) -> tuple[int, str]:
    """The tokens that the slowest entry can train on in this time, from a few measured steps, and its name."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        paces = {sized.entry.name: _pace(sized, task, rows["train"]) for sized in entries}
    finally:
        torch.set_num_threads(before)
    slowest = min(paces, key=lambda name: paces[name])
    return _rounded(paces[slowest] * seconds), slowest


def _pace(sized: Sized, task: AnyTask, train: Any) -> float:
    """Training tokens per second."""
    config = changed(sized.config.train, epochs=1.0)
    needed = estimate(sized.model.assemble(task), task, config, Engine(config), train, None)
    return task.epoch_tokens(train) / max(1e-9, needed.training)


def _rounded(tokens: float) -> int:
    """Two significant digits, rounded down."""
    unit = 10 ** max(0, len(str(int(tokens))) - 2)
    return max(1, int(tokens) // unit * unit)
