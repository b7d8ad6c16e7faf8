"""From finished runs to figures: best and median over seeds, what they count as, and how they compare."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from seqloom.core.rows import Json
from seqloom.diagnose.problems import PROBLEMS, Problem
from seqloom.diagnose.published import Figure, figures
from seqloom.diagnose.rules import CLOSE, NEAR, SOLVED, Rules
from seqloom.lab.entries import Entry
from seqloom.lab.job import Result


@dataclass(frozen=True)
class Course:
    """The runs of one model on one problem."""

    entry: Entry
    problem: str
    rate: float
    trials: dict[float, Result]  # by learning rate, with the first seed
    runs: list[Result]  # by seed, with the best rate


def assemble(courses: list[Course], rules: Rules, left_out: dict[str, str]) -> Json:
    models: dict[str, Json] = {}
    for course in courses:
        model = models.setdefault(course.entry.name, {"name": course.entry.name, "model": course.entry.model})
        model.setdefault("problems", {})[course.problem] = outcome(course)
    problems = [_described(PROBLEMS[name]) for name in rules.problems]
    return {"rules": rules.plain(), "problems": problems, "models": list(models.values()), "left_out": left_out}


def outcome(course: Course) -> Json:
    """Figures of one model on one problem; the best seed counts, as in publications, with the median beside it."""
    done = [run for run in course.runs if run["state"] == "done" and run["accuracy"] is not None]
    failed = [str(run.get("error")) for run in course.runs if run["state"] != "done"]
    if not done:
        return {"verdict": "failed", "error": failed[0] if failed else "it cannot read rows of the tested length"}
    best = max(done, key=lambda run: run["accuracy"])
    found: Json = {
        "best": best["accuracy"],
        "median": median(run["accuracy"] for run in done),
        "trained": {"best": best["trained"], "median": median(run["trained"] for run in done)},
        "guess": best["guess"],
        "ranges": best["ranges"],
        "parameters": best["parameters"],
        "memory": best["memory"],
        "rate": course.rate,
        "losses": {f"{rate:g}": run.get("loss") for rate, run in course.trials.items()},
        "runs": [{name: run[name] for name in ("accuracy", "trained", "steps", "seconds")} for run in done],
        "failed": failed,
    }
    found["verdict"] = verdict(found, PROBLEMS[course.problem])
    as_published = () if course.entry.options else figures(course.problem, course.entry.model)
    found["published"] = [_beside(figure, found) for figure in as_published]
    return found


def verdict(found: Json, problem: Problem) -> str:
    """solved; trained: solved at the trained sizes only; part; guess: near guessing."""
    if found["best"] >= SOLVED:
        return "solved"
    if problem.beyond and found["trained"]["best"] >= SOLVED:
        return "trained"
    return "guess" if near(found["best"], found["guess"]) else "part"


def near(accuracy: float, guess: float) -> bool:
    return (accuracy - guess) / (1 - guess) <= NEAR


def _beside(figure: Figure, found: Json) -> Json:
    """A published figure, and whether ours agrees: close to it, both solved, or both near guessing."""
    theirs, ours = figure.accuracy, found["best"]
    both: Any = (theirs >= SOLVED and ours >= SOLVED) or (near(theirs, figure.guess) and near(ours, found["guess"]))
    return {
        "source": figure.source,
        "called": figure.called,
        "accuracy": theirs,
        "agrees": bool(both or abs(theirs - ours) <= CLOSE),
    }


def _described(problem: Problem) -> Json:
    return {
        "name": problem.name,
        "title": list(problem.title),
        "trained": problem.trained,
        "scored": list(problem.scored),
        "beyond": problem.beyond,
        "counts": problem.counts,
        "longest": max(problem.lengths),
    }
