"""`diagnose`, from the names of models to the page: match sizes, try learning rates, train over seeds, score.

    DIR/runs/MODEL/PROBLEM/     the result of every run, by learning rate and seed
    DIR/diagnosis.json          all results; DIR/report.html and report.md present them

Running the same command again reuses finished runs and rewrites the page.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from seqloom.core.errors import RunError
from seqloom.core.json_text import to_json
from seqloom.diagnose import results
from seqloom.diagnose.diagnosis import FILE, Diagnosis
from seqloom.diagnose.field import code_of, field
from seqloom.diagnose.page import report_files
from seqloom.diagnose.rules import Rules
from seqloom.lab.crew import Crew, check_jobs
from seqloom.lab.entries import Entry
from seqloom.lab.job import Job, Result
from seqloom.lab.watch import Watch, watcher
from seqloom.runs import durable
from seqloom.runs.kept import check_own
from seqloom.runs.lock import locked
from seqloom.runs.record import versions

OUT = "runs/diagnose"
_FIRST = 1  # seed


def diagnose(
    models: str | Sequence[str] | None = None,
    *,
    problems: str | Sequence[str] | None = None,
    params: int | None = None,
    steps: int | None = None,
    seeds: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    out: str | Path | None = None,
    quiet: bool = False,
    command: str = "",
) -> Diagnosis:
    """Measure what the memory of each model can and cannot do, on small problems with exact answers.

    `models`: names as in `compare`, by default every causal model that is trained by gradient descent; `problems`: by
    default all; `params`, `steps`: size of every model, and most steps of every run; `seeds`: runs of each model on
    each problem; `jobs`: runs at once; `quick`: a look in a minute or two, with fewer problems and steps and one seed;
    `out`: the folder for all results and the page, by default runs/diagnose, or runs/diagnose-quick.
    """
    check_jobs(jobs)
    chosen = problems if problems is None or isinstance(problems, str) else tuple(problems)
    rules = Rules.given(quick, chosen, parameters=params, steps=steps, seeds=seeds)
    entries, left_out = field(models, rules)
    folder = Path(out or (f"{OUT}-quick" if quick else OUT))
    check_own(folder, FILE)
    watch = watcher(quiet)
    started, began = time.perf_counter(), datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        with locked(folder):
            crew = Crew(jobs, 1, watch)
            with crew.working():
                found = _work(crew, entries, rules, folder, watch)
            result = results.assemble(found, rules, left_out) | {
                "versions": versions(),
                "started": began,
                "seconds": round(time.perf_counter() - started, 1),
                "command": command,
            }
            durable.write_file(folder / FILE, to_json(result) + b"\n")
            for name, content in report_files(result).items():
                durable.write_file(folder / name, content)
    finally:
        watch.close()
    return Diagnosis(folder, result)


def _work(crew: Crew, entries: list[Entry], rules: Rules, folder: Path, watch: Watch) -> list[results.Course]:
    """First the learning rates with the first seed, then the other seeds with the rate that had the lowest loss."""
    pairs = [(entry, problem) for entry in entries for problem in rules.problems]
    runs = len(rules.rates) + rules.seeds - 1
    watch.plan([entry.name for entry in entries], runs * len(pairs), float(runs * len(pairs)), crew.parallel)
    trials = _trials(crew, pairs, rules, folder, watch)
    seeds = range(_FIRST + 1, _FIRST + rules.seeds)
    rates = [_best(tried) for tried in trials]
    others = [
        crew.submit([_job(e, p, rate, seed, rules, folder) for seed in seeds])
        for (e, p), rate in zip(pairs, rates, strict=True)
    ]
    courses = [
        results.Course(entry, problem, rate, tried, [tried[rate], *crew.wait(rest)])
        for (entry, problem), rate, tried, rest in zip(pairs, rates, trials, others, strict=True)
    ]
    if all(run["state"] != "done" for course in courses for run in course.runs):
        raise RunError(f"every run failed; the first: {courses[0].runs[0].get('error')}")
    return courses


Trials = dict[float, Result]  # by learning rate, with the first seed


def _trials(crew: Crew, pairs: list[tuple[Entry, str]], rules: Rules, folder: Path, watch: Watch) -> list[Trials]:
    """One rate after another; when nothing is left to learn with one, the next is not tried."""
    found: list[Trials] = [{} for _ in pairs]
    for rate in rules.rates:
        waiting = {}
        for n, (entry, problem) in enumerate(pairs):
            if any(_learned(run, rules) for run in found[n].values()):
                watch.skip(1)
            else:
                waiting[n] = crew.submit([_job(entry, problem, rate, _FIRST, rules, folder)])
        for n, futures in waiting.items():
            (found[n][rate],) = crew.wait(futures)
    return found


def _learned(run: Result, rules: Rules) -> bool:
    return run["state"] == "done" and run["steps"] < rules.steps


def _best(tried: Trials) -> float:
    """The rate with the lowest loss at the end; if none got there, the first."""
    losses = {rate: run["loss"] for rate, run in tried.items() if run["state"] == "done"}
    return min(losses, key=losses.__getitem__) if losses else next(iter(tried))


def _job(entry: Entry, problem: str, rate: float, seed: int, rules: Rules, folder: Path) -> Job:
    return {
        "kind": "feature",
        "module": "diagnose.solving",
        "entry": entry.name,
        "title": f"{problem}, rate {rate:g}, seed {seed}",
        "size": 1.0,
        "turn": [0 if seed == _FIRST else 1],
        "folder": str(folder / "runs" / entry.folder / problem / f"rate-{rate:g}-seed-{seed}"),
        "model": [entry.name, entry.model, list(entry.options)],
        "code": code_of(entry),
        "problem": problem,
        "rate": rate,
        "seed": seed,
        "rules": rules.of_a_run(),
        "threads": 1,
    }
