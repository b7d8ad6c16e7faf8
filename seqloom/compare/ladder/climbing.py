"""From the runs of a ladder to its curves, whatever it is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np

from seqloom.compare.field import Field
from seqloom.core.rows import Json
from seqloom.lab import statistics
from seqloom.lab.entries import Sized
from seqloom.lab.job import Job, Result
from seqloom.lab.jobs import Jobs
from seqloom.lab.ladder import CONFIDENCE, SURE, TIMES, Curve, Rung, crossing
from seqloom.lab.rules import Ladder as Kind
from seqloom.lab.rungs import RUNGS, climbed, cost
from seqloom.runs.folder import RunFolder

_TOP = 4  # entries of which every pair is compared
_DRAWN = 13  # points of a fitted curve on either side of the final runs

Submit = Callable[[Sequence[Job]], list[Future[Result]]]
Wait = Callable[[Sequence[Future[Result]]], list[Result]]
Course = tuple[Sized, Sequence[Future[Result]]]  # an entry, and its final runs
Pending = tuple[int, Future[Result]]  # a seed, and its run
Seen = tuple[int, Result]


class Ladder(ABC):
    kind: ClassVar[Kind]
    less: ClassVar[str]  # what the rungs have less of
    suffix: ClassVar[str] = ""  # of the folders of its rungs

    def __init__(self, jobs: Jobs, field: Field) -> None:
        """Validate before any job starts."""
        self.jobs, self.field = jobs, field
        self.seeds = jobs.seeds[: climbed(self.kind, len(jobs.seeds))]
        self.check()

    @property
    @abstractmethod
    def unit(self) -> str:
        """Of `at`."""

    @property
    @abstractmethod
    def full(self) -> float:
        """Where the final runs are, in that unit."""

    @abstractmethod
    def rung(self, sized: Sized, seed: int, place: int, final: Result) -> Job | None:
        """The run of one rung, whose final run is done; None: it is impossible."""

    def check(self) -> None:
        """Refuse a comparison that cannot have this ladder."""
        return

    def seeds_of(self, sized: Sized) -> list[int]:
        """The seeds with which this entry has rungs; none: it takes no part."""
        return self.seeds if sized.trained else []

    def note(self) -> str:
        """What else the user should know before training, or nothing."""
        return ""

    @property
    def count(self) -> int:
        """Number of further runs."""
        return len(RUNGS) * sum(len(self.seeds_of(sized)) for sized in [*self.field.entries, *self.field.baselines])

    @property
    def amount(self) -> float:
        """Their training, in full runs."""
        entries = self.field.entries
        return len(entries) * len(self.seeds) * cost(self.kind, entries[0].config.train.decay)

    def told(self) -> list[str]:
        """Lines: what is trained in addition, and what that costs."""
        few = f" with the first {len(self.seeds)} seeds" if len(self.seeds) < len(self.jobs.seeds) else ""
        times = 1 + self.amount / self.jobs.amount(len(self.field.entries))
        also = f"ladder: also 1/8, 1/4 and 1/2 of {self.less}{few}, about {times:.2f} times the training without it"
        return [line for line in (also, self.note()) if line]

    def work(self, courses: Sequence[Course], submit: Submit, wait: Wait) -> Json:
        """Train the rungs, seed by seed as the final runs finish; the curves, and the order of every pair."""
        courses = [(sized, runs) for sized, runs in courses if self.seeds_of(sized)]
        rungs: dict[str, list[list[Pending]]] = {sized.entry.name: [[] for _ in RUNGS] for sized, _ in courses}
        for turn, seed in enumerate(self.seeds):
            taking = [(sized, runs) for sized, runs in courses if seed in self.seeds_of(sized)]
            finals = wait([runs[min(turn, len(runs) - 1)] for _, runs in taking])
            for (sized, _), final in zip(taking, finals, strict=True):
                for place in range(len(RUNGS)) if final["state"] == "done" else ():
                    if job := self.rung(sized, seed, place, final):
                        rungs[sized.entry.name][place] += [(seed, future) for future in submit([job])]
        found = {}
        for sized, runs in courses:
            every = [*rungs[sized.entry.name], list(zip(self.jobs.seeds, runs, strict=False))]
            seen = [[(seed, wait([future])[0]) for seed, future in each] for each in every]
            found[sized.entry.name] = self._points(sized, seen)
        return self._fitted({name: points for name, points in found.items() if points})

    def _points(self, sized: Sized, seen: Sequence[Sequence[Seen]]) -> list[Json]:
        """Scores by rung, the final runs last; a rung without any finished run is left out."""
        points = []
        for place, share in enumerate([*(share for _, share in RUNGS), 1.0]):
            done = [run for seed, result in seen[place] if (run := self._run(sized, place, seed, result))]
            if done:
                scores = [run["score"] for run in done]
                points.append({"at": self._at(share), "score": asdict(statistics.interval(scores)), "runs": done})
        return points

    def _at(self, share: float) -> float:
        """A share of the final runs, in the unit of the ladder."""
        return share * self.full if self.unit == "flops" else round(share * self.full)

    def _run(self, sized: Sized, place: int, seed: int, result: Result) -> Json | None:
        """None if it failed, or has no metric: a model that only outputs text has no loss."""
        if result["state"] != "done" or self.jobs.score.name not in result["summary"]["scores"]["test"]:
            return None
        name = f"{self.name(place)}-seed-{seed}" if place < len(RUNGS) else f"seed-{seed}"
        summary = result["summary"]
        return {
            "seed": seed,
            "score": summary["scores"]["test"][self.jobs.score.name],
            "tokens": summary["tokens"],
            "parameters": summary["parameters"],
            "training_loss": self._training_loss(self.jobs.out / self.jobs.runs / sized.entry.folder / name),
            "folder": f"{self.jobs.runs}/{sized.entry.folder}/{name}",
        }

    def once(self, name: str) -> float | None:
        """Where on this ladder an entry begins to read training data again; None: nowhere, or the same everywhere."""
        return None

    def _training_loss(self, folder: Path) -> float | None:
        """The mean over the last tenth of a run; None where it is not in the unit of the metric."""
        losses = [entry["train"]["loss"] for entry in RunFolder(folder).metrics() if "train" in entry]
        last = losses[-max(1, len(losses) // 10) :]
        return fmean(last) if last and self.jobs.score.name == "loss" else None

    def name(self, place: int) -> str:
        return f"{RUNGS[place][0]}{self.suffix}"

    def _fitted(self, points: Mapping[str, list[Json]]) -> Json:
        """Curves of all entries, and, of the best ones, who is ahead with more."""
        scores = [run["score"] for every in points.values() for point in every for run in point["runs"]]
        higher = self.jobs.score.higher_is_better
        ceiling = (1.0 if max(scores, default=0.0) <= 1 else 100.0) if higher else None
        curves = {
            name: Curve([_rung(point) for point in every], ceiling, seed, self.once(name))
            for seed, (name, every) in enumerate(points.items())
        }
        whole = [name for name in points if points[name][-1]["at"] == self._at(1.0)]
        top = sorted(whole, key=lambda n: points[n][-1]["score"]["mean"], reverse=higher)[:_TOP]
        return {
            "kind": self.kind,
            "over": self.unit,
            "times": list(TIMES),
            "confidence": CONFIDENCE,
            "sure": SURE,
            "full": self._at(1.0),
            "seeds": len(self.seeds),
            "entries": {name: {"points": every} | _described(curves[name]) for name, every in points.items()},
            "pairs": [{"first": a, "second": b} | _pair(curves[a], curves[b]) for a, b in combinations(top, 2)],
        }


def _rung(point: Json) -> Rung:
    training = [run["training_loss"] for run in point["runs"]]
    return Rung(point["at"], [run["score"] for run in point["runs"]], [] if None in training else training)


def _described(curve: Curve) -> Json:
    if curve.problem:
        return {"fit": None, "problem": curve.problem, "predicted": [], "curve": []}
    start, full, end = curve.rungs[0].at, curve.full, curve.full * TIMES[-1]
    inside, beyond = np.geomspace(start, full, _DRAWN), np.geomspace(full, end, _DRAWN)
    drawn = [asdict(point) | {"low": None, "high": None} for point in curve.band(inside.tolist()[:-1])]
    return {
        "fit": curve.parameters(),
        "memorising": curve.memory is not None,
        "predicted": [asdict(point) for point in curve.predict()],
        "curve": drawn + [asdict(point) for point in curve.band(beyond.tolist(), single=True)],
    }


def _pair(first: Curve, second: Curve) -> Json:
    if first.problem or second.problem:
        return {"verdict": "unclear", "ahead": None, "now": None, "later": None, "at": None, "low": None, "high": None}
    return asdict(crossing(first, second))
