"""Few labelled rows: the score of every entry by the number of rows per label.

Every seed draws its own rows, the same ones for every entry, and a smaller draw is part of a larger one. Settings are
those that `fit` would choose for so few rows, because settings tuned on all rows would not be known then; the size is
that of the comparison. At most as many rows of the validation set are used as of the training set, so that no model
is selected with labels that would not be there.

    DIR/runs/ENTRY/8-per-label-seed-1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from seqloom.compare import judging
from seqloom.compare.defaults import SHORT
from seqloom.compare.field import Field
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.lab import statistics
from seqloom.lab.entries import Sized, changed
from seqloom.lab.job import Job, Result
from seqloom.lab.jobs import FINALS, Jobs
from seqloom.runs.settings import RunConfig

_SCORED = 1000  # rows of the test set that are scored, evenly spaced

Submit = Callable[[Sequence[Job]], list[Future[Result]]]
Wait = Callable[[Sequence[Future[Result]]], list[Result]]


class Few:
    def __init__(self, jobs: Jobs, numbers: Sequence[int], field: Field) -> None:
        """Validate before any job starts. `numbers`: of rows per label."""
        self.jobs, self.field = jobs, field
        options = field.entries[0].config.data
        if "per_label" not in options or options.get("separator") is not None:
            raise UserError("--per-label: only for texts with one label each; leave it out")
        if options["per_label"] or options["examples"]:
            raise UserError("--per-label draws its own rows; leave data.per_label and data.examples out")
        train: Any = field.reading.rows["train"]
        counts = Counter(label for (label,) in train.labels)
        drawn = {number: sum(min(number, count) for count in counts.values()) for number in numbers}
        self.rows = {number: rows for number, rows in drawn.items() if rows < len(train)}  # by the number per label
        if not self.rows:
            raise UserError(
                f"--per-label {numbers[0]}: the training set has only {len(train):,} rows of {len(counts):,} labels; "
                "use a smaller number"
            )
        left_out = [f"{number:,}" for number in numbers if number not in self.rows]
        self.told = [f"--per-label: {', '.join(left_out)} per label are all rows; left out"] if left_out else []

    @property
    def count(self) -> int:
        """Number of further runs."""
        entries = [*self.field.entries, *self.field.baselines]
        return len(entries) * len(self.rows) * len(self.jobs.seeds)

    @property
    def amount(self) -> float:
        """Their training, roughly, in full runs: few rows are read quickly."""
        trained = sum(sized.trained for sized in self.field.entries)
        return SHORT * trained * len(self.rows) * len(self.jobs.seeds)

    def work(self, entries: Sequence[Sized], submit: Submit, wait: Wait) -> dict[str, Json]:
        """By entry name: its scores for each number of rows."""
        pending = [[submit(self._jobs(sized, number)) for number in self.rows] for sized in entries]
        return {
            sized.entry.name: self._summary([wait(runs) for runs in futures])
            for sized, futures in zip(entries, pending, strict=True)
        }

    def _jobs(self, sized: Sized, number: int) -> list[Job]:
        return [self._fit(sized, number, seed) for seed in self.jobs.seeds]

    def _fit(self, sized: Sized, number: int, seed: int) -> Job:
        config = self._configured(sized, number, seed)
        known = {part: hash for part, hash in self.jobs.hashes.items() if part != "train"}
        job = self.jobs.fit(config, sized, f"{number}-per-label-seed-{seed}", ["test"], known)
        drawn = {"drawn from": self.jobs.hashes["train"]}
        return job | drawn | {"title": f"{number:,} rows per label, seed {seed}", "size": 0.1, "turn": [FINALS]}

    def _configured(self, sized: Sized, number: int, seed: int) -> RunConfig:
        """The budget of a final run is the most that is spent."""
        draw = {"per_label": number, "draw": seed}
        config = sized.entry.settings(self.jobs.rules, draw)
        held = {"validation": min(config.task["validation"], self.rows[number])}
        held |= {"scored": min(config.task["scored"] or _SCORED, _SCORED)}
        held |= {"shots": min(config.task["shots"], number)} if sized.drawn else {}
        own = {"task": config.task | held, "data": sized.config.data | draw, "model": sized.config.model}
        budget = sized.budget(self.jobs.rules.budget) if sized.trained else {}
        most = {option: value for option, value in budget.items() if value is not None}
        train = changed(config.train, seed=seed, start=sized.config.train.start, **self.jobs.common(sized), **most)
        return config.model_copy(update=own | {"train": train, "tokenizer": sized.config.tokenizer})

    def _summary(self, found: Sequence[Sequence[Result]]) -> Json:
        points = []
        for (number, rows), results in zip(self.rows.items(), found, strict=True):
            point: Json = {"per_label": number, "rows": rows, "score": None}
            if failed := [result for result in results if result["state"] != "done"]:
                points.append(point | {"error": failed[0].get("error")})
                continue
            tests, score = [result["summary"]["scores"]["test"] for result in results], self.jobs.score
            sample = judging.of_tests(tests, score.name, score.name == self.field.task.metric)
            interval = statistics.score_interval(sample, bounds=score.bounds)
            seconds = sum(result["summary"]["seconds"] for result in results) / len(results)
            points.append(point | {"score": asdict(interval), "seconds": seconds})
        return {"points": points, "scored": self._scored}

    @property
    def _scored(self) -> int:
        """Rows of the test set."""
        config = self.field.entries[0].config
        return min(len(self.field.reading.rows["test"]), config.task["scored"] or _SCORED, _SCORED)
