"""`compare`, from the command to the report: match sizes, tune, train over seeds, measure, test, recommend.

    DIR/comparison.json     the plan; DIR/tokenizer/: shared by all entries
    DIR/runs/ENTRY/         trial-01, ...: the search; seed-1, ...: the final runs; each is a run folder
    DIR/result.json         all results; DIR/report.html and report.md present them

Running the same command again reuses finished jobs, continues unfinished ones and rewrites the report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seqloom.compare import looks, record, results
from seqloom.compare.advice.recommend import PREFERENCES
from seqloom.compare.comparison import Comparison, use_command
from seqloom.compare.defaults import BUDGET, default_models, named_after
from seqloom.compare.few import Few
from seqloom.compare.field import Field
from seqloom.compare.ladder import LADDERS
from seqloom.compare.plan import Plan, Pretraining, column_overrides, guesses
from seqloom.compare.plan import per_label as few_rows
from seqloom.compare.report import report_files
from seqloom.compare.results import Found
from seqloom.compare.transfer import Transfer
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.core.rows import Json
from seqloom.data.files import declare
from seqloom.data.memory import Data
from seqloom.data.shapes.columns import Columns
from seqloom.lab import search
from seqloom.lab.crew import Crew, check_jobs
from seqloom.lab.entries import Sized
from seqloom.lab.job import Job, Result
from seqloom.lab.jobs import PROBE_SEEDS, Jobs, override
from seqloom.lab.rules import MOST_SEEDS, Budget, Margin, parse_count
from seqloom.lab.watch import Watch, watcher
from seqloom.runs.durable import write_file
from seqloom.runs.folder import RunFolder
from seqloom.runs.given import Named, Section, place, settings
from seqloom.runs.kept import write_json
from seqloom.runs.record import versions
from seqloom.runs.schema import mistake
from seqloom.runs.terminal import reporter

PLACES = ("local", "ray")
EXAMPLES = "100,400,1600"  # numbers of labelled rows at which transfer is measured
COUNTS = ("all", "backbone")
_MEASURING = 0.01  # time limit per measurement, as a share of the training time


def compare(
    *,
    data: Data,
    models: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    task: Named = None,
    valid: Data = None,
    test: Data = None,
    encoding: str | None = None,
    params: str | int | None = None,
    count: str = "all",
    budget: str = BUDGET,
    trials: int = 4,
    trial_share: float = 0.5,
    tune_depth: bool = False,
    seeds: int = 3,
    seed: int = 0,
    margin: str | float = "1%",
    pretrain: str | None = None,
    pretrain_budget: str | None = None,
    examples: str | None = None,
    ladder: str | None = None,
    per_label: str | None = None,
    jobs: int = 1,
    on: str = "local",
    columns: Columns | None = None,
    train: Section = None,
    tokenizer: Section = None,
    options: Section = None,
    overrides: Sequence[str] = (),
    prefer: str = "quality",
    max_params: str | int | None = None,
    max_latency_ms: float | None = None,
    streaming: bool = False,
    quiet: bool = False,
    command: str = "",
) -> Comparison:
    """Compare several models fairly on one dataset. Options as in `seqloom compare`; data, and settings for all models
    (`train`, `tokenizer`, `options`), as in `seqloom.fit`; `columns`: names by role, like {"label": "stars"}. The
    default `task` is guessed from the data, the default `models` suit it, and `out` is named after the data."""
    _check({"prefer": prefer, "on": on, "count": count, "ladder": ladder}, trials, seeds, trial_share)
    check_jobs(jobs, on)
    watch, given = watcher(quiet), [*overrides, *([f"data.encoding={encoding}"] if encoding else [])]
    names, overrides = settings(given, options, task=task, train=train, tokenizer=tokenizer)
    placed = place({"train": data, "valid": valid, "test": test}, names.get("task"), overrides)
    specs, name = placed.specs, placed.task or _guessed(placed.specs["train"], columns or {}, encoding, watch)
    models = default_models(name) if models is None else models
    plan = _planned(
        task=name, data=specs, models=tuple(models.split(",") if isinstance(models, str) else models),
        params=None if params is None else parse_count(str(params), "--params"),
        budget=Budget.parse(budget), trials=trials, trial_share=trial_share, tune_depth=tune_depth, seeds=seeds,
        overrides=(*placed.overrides, *column_overrides(name, columns or {}, overrides), *overrides),
        seed=seed, threads=max(1, _cores() // jobs), margin=Margin.parse(str(margin)),
        count=count, ladder=ladder,
        per_label=() if per_label is None else few_rows(per_label),
        pretraining=_pretraining(pretrain, pretrain_budget, budget, examples),
    )  # fmt: skip
    wishes, folder = _wishes(prefer, max_params, max_latency_ms, streaming), Path(out or named_after(specs["train"]))
    return conduct(plan, folder, jobs=jobs, on=on, wishes=wishes, watch=watch, quiet=quiet, command=command)


def _pretraining(text: str | None, own_budget: str | None, budget: str, examples: str | None) -> Pretraining | None:
    if text is not None:
        return Pretraining.parse(text, own_budget or budget, EXAMPLES if examples is None else examples)
    for option, given in (("--pretrain-budget", own_budget), ("--examples", examples)):
        if given is not None:
            raise UserError(f"{option}: belongs to --pretrain TEXT, which is not given; add it, or leave {option} out")
    return None


def _planned(**given: Any) -> Plan:
    try:
        return Plan(**given)
    except ValidationError as error:
        option, _, problem = mistake(error).partition(": ")
        raise UserError(f"--{option.partition('.')[0].replace('_', '-')}: {problem}") from None


def _wishes(prefer: str, max_params: str | int | None, max_latency_ms: float | None, streaming: bool) -> Json:
    if max_latency_ms is not None and not max_latency_ms > 0:
        raise UserError(f"--max-latency-ms {max_latency_ms:g}: must be above 0")
    most = None if max_params is None else parse_count(str(max_params), "--max-params")
    return {"prefer": prefer, "max_params": most, "max_latency_ms": max_latency_ms, "streaming": streaming}


def _check(words: Mapping[str, str | None], trials: int, seeds: int, trial_share: float) -> None:
    choices = {"prefer": PREFERENCES, "on": PLACES, "count": COUNTS, "ladder": LADDERS}
    for option, value in words.items():
        if value is not None and value not in choices[option]:
            raise UserError(f"--{option} {value}: choose one of {', '.join(choices[option])}")
    for option, number, least in (("trials", trials, 0), ("seeds", seeds, 1)):
        if not least <= number <= MOST_SEEDS:
            raise UserError(f"--{option} {number}: must be {least} to {MOST_SEEDS:,}")
    if not 0 < trial_share <= 1:
        raise UserError(f"--trial-share {trial_share:g}: must be a share of the budget, above 0 and at most 1")


def _guessed(data: str, columns: Columns, encoding: str | None, watch: Watch) -> str:
    """The task that suits the data best."""
    declare(data, encoding)
    found = guesses(data, columns)
    if not found:
        raise UserError(f"{data}: it does not show what is to be learned from it; say so with --task")
    task, reason = found[0]
    watch.say(f"task: {task}: {reason} (--task to change)")
    return task


def conduct(
    plan: Plan,
    out: Path,
    *,
    jobs: int,
    on: str,
    wishes: Mapping[str, Any],
    watch: Watch,
    quiet: bool,
    command: str,
) -> Comparison:
    """Run the whole comparison; `wishes` (preference and constraints) affect only the recommendation."""
    folder = RunFolder(out.resolve() if on == "ray" else out)  # other machines have another working directory
    out, before = folder.path, record.known(folder)
    plan, changes = record.agreed(plan, before, out)
    budgets = record.budgets(plan, before)
    budget = budgets[str(plan.budget)]
    try:
        with folder.lock():
            field = _field(plan, folder, on, quiet, jobs, budget["allotted"], before.get("size"))
            record.check_data(field.data, before.get("data"), out)
            score = field.score
            look = looks.agree(out, plan, field.data, looks.analysis(plan, score.name, score.higher_is_better))
            comparing = _Comparing(field.plan, field, out, jobs, watch, budget["runs"])
            if changes:
                watch.say(record.told(out, changes, comparing.jobs, field.entries))
            budgets[str(plan.budget)] = budget | {"allotted": field.allotted}
            record.check_score(score.name, before.get("score"), out)
            kept = {
                "plan": record.plain(plan),
                "score": score.name,
                "data": field.data,
                "size": field.target,
                "budgets": budgets,
            }
            write_json(out / "comparison.json", kept | {"models": record.entries_ever(plan, before)})
            with comparing.working(on):
                found = comparing.work()
            timing = watch.timing(time.perf_counter() - comparing.started)
            protocol = field.protocol() | {
                "jobs": jobs,
                "on": on,
                "versions": versions(),
                "command": command,
                "started": comparing.began,
                "use": use_command(field.task.verb, out, plan.data["train"]),
            }
            result = results.assemble(found, protocol, look, plan.margin, wishes, timing)
            looks.taken(out, plan)
            write_json(out / "result.json", result)
            for name, content in report_files(result).items():
                write_file(out / name, content)
    finally:
        watch.close()
    return Comparison(out, result)


@dataclass(frozen=True)
class _Course:
    """One entry in a comparison: its trials, and its final runs and probe, finished or pending."""

    sized: Sized
    trials: list[Json]
    jobs: list[Job]
    runs: list[Future[Result]]
    probes: list[Future[Result]]


class _Comparing(Crew):
    """Schedules the jobs of a comparison and collects their results."""

    def __init__(self, plan: Plan, field: Field, out: Path, jobs: int, watch: Watch, runs: str) -> None:
        super().__init__(jobs, plan.threads, watch)
        self.plan, self.field = plan, field
        self.jobs = Jobs(plan, out, field.score, field.data, len(plan.models), runs)
        self.transfer = plan.pretraining and Transfer(self.jobs, plan.pretraining, field)
        self.ladder = LADDERS[plan.ladder](self.jobs, field) if plan.ladder else None
        self.few = Few(self.jobs, plan.per_label, field) if plan.per_label else None
        self.began, self.started = datetime.now().astimezone().isoformat(timespec="seconds"), time.perf_counter()
        self.better = max if field.score.higher_is_better else min

    def work(self) -> Found:
        plan, entries, baselines = self.plan, self.field.entries, self.field.baselines
        others = [other for other in (self.transfer, self.ladder, self.few) if other]
        for line in (*(self.ladder.told() if self.ladder else ()), *(self.few.told if self.few else ())):
            self.watch.say(line)
        trained = [sized for sized in entries if sized.trained]
        planned = len(trained) * plan.trials + len(entries) * plan.seeds + len(baselines) + 1
        planned += sum(PROBE_SEEDS for sized in entries if not sized.started)
        planned += sum(other.count for other in others)
        amount = self.jobs.work(len(trained)) + sum(other.amount for other in others)
        self.watch.plan([sized.entry.name for sized in entries], planned, amount, self.parallel)
        found = Found(self.field.task, self.field.score, self.jobs.seeds, self.jobs.runs)
        counting = [self.jobs.final(sized, self.jobs.seeds[0]) for sized in baselines]
        fitted = self.submit(counting)
        with ThreadPoolExecutor(len(entries)) as threads:
            courses = list(threads.map(self._run_entry, entries))
        measuring = self._measure(courses, [sized for sized, r in zip(baselines, self.wait(fitted), strict=True)
                                            if r["state"] == "done"])  # fmt: skip
        if self.ladder:
            closed = [(sized, [future]) for sized, future in zip(baselines, fitted, strict=True)]
            found.ladder = self.ladder.work([*((c.sized, c.runs) for c in courses), *closed], self.submit, self.wait)
        if self.few:
            found.few = self.few.work([*entries, *baselines], self.submit, self.wait)
        if self.transfer:
            found.transfer = self.transfer.work([course.sized for course in courses], self.submit, self.wait)
        for course in courses:
            found.add(course.sized, course.trials, course.jobs, self.wait(course.runs), self.wait(course.probes))
        found.closed = baselines
        found.fitted = {j["entry"]: (j, result) for j, result in zip(counting, self.wait(fitted), strict=True)}
        for done in self.wait(measuring):
            found.measured, found.naive = done.get("entries", {}), done.get("baselines", {})
        return found

    def _run_entry(self, sized: Sized) -> _Course:
        """Tune an entry, then submit its final runs; entries alternate, seed by seed, so that a slow phase of the
        machine affects all of them. Probes run when nothing else is waiting."""
        depths = self.field.depths(sized)
        trials = self._search(sized, depths)
        sized = self._tuned(sized, depths, trials)
        cost = max((trial["seconds"] for trial in trials), default=sized.flops_per_token)
        jobs = [self.jobs.final(sized, seed, cost) for seed in self.jobs.seeds]
        return _Course(sized, trials, jobs, self.submit(jobs), self.submit(self.jobs.probes(sized, cost)))

    def _measure(self, courses: Sequence[_Course], fitted: Sequence[Sized]) -> list[Future[Result]]:
        """Cost and aspects of all entries whose first run finished, in parallel with the remaining runs."""
        first = self.wait([course.runs[0] for course in courses])
        done = [(c.sized, r["summary"]["seconds"]) for c, r in zip(courses, first, strict=True) if r["state"] == "done"]
        if not done:
            return []
        room = _MEASURING * self.plan.seeds * sum(seconds for _, seconds in done) / len(done)
        measured = [*(sized for sized, _ in done), *fitted]
        return self.submit([self.jobs.measure(measured, round(min(6.0, max(1.0, room)), 1))])

    def _search(self, sized: Sized, depths: Mapping[int, Sized]) -> list[Json]:
        """Run the trials of one entry, round by round."""
        if not self.plan.trials or not sized.trained:
            return []
        trials: list[Json] = []
        first = search.first_settings(sized.config.train, sized.config.model, bool(depths))
        lower = self.better is min
        proposals = search.rounds(self.plan.trials, first, sized.fixed, lower, list(depths))
        proposed = next(proposals)
        reference: search.Curve = []
        while True:
            jobs = [
                self.jobs.trial(depths.get(s.get("depth", 0), sized), s, len(trials) + n + 1, reference)
                for n, s in enumerate(proposed)
            ]
            outcomes = [self._trial(*each) for each in zip(jobs, proposed, self.do(jobs), strict=True)]
            trials += [trial | {"trial": len(trials) + n} for n, trial in enumerate(outcomes, 1)]
            whole = [trial for trial in trials if trial["state"] == "done"]
            reference = self.better(whole, key=lambda t: t["score"])["curve"] if whole else []
            try:
                proposed = proposals.send([trial["score"] for trial in outcomes])
            except StopIteration:
                return trials

    def _trial(self, job: Job, settings: search.Settings, result: Result) -> Json:
        curve = [(point["share"], point["valid"]) for point in result.get("curve") or ()]
        score = result["summary"]["scores"]["valid"][job["metric"]] if result["state"] == "done" else None
        share = min(1.0, curve[-1][0]) if curve else 0.0
        last = curve[-1][1] if curve and score is None else None  # where it was stopped
        told = {"settings": settings, "curve": curve, "score": score, "last": last, "share": share}
        return told | {"seconds": result["wall"]} | {key: result.get(key) for key in ("state", "error")}

    def _tuned(self, sized: Sized, depths: Mapping[int, Sized], trials: list[Json]) -> Sized:
        whole = [trial for trial in trials if trial["state"] == "done"]
        if not whole:
            return sized
        chosen = self.better(whole, key=lambda t: t["score"])["settings"]
        sized = depths.get(chosen.get("depth", 0), sized)
        return override(sized, search.as_overrides(chosen, sized.config.train))


def _field(
    plan: Plan, folder: RunFolder, on: str, quiet: bool, jobs: int, allotted: float | None, size: int | None
) -> Field:
    """Show progress while the data is prepared."""
    progress = Silent() if quiet else reporter()
    try:
        return Field(plan, folder, progress, on == "ray", jobs, allotted, size)
    finally:
        progress.close()


def _cores() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
