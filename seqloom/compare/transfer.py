"""Transfer: the score by number of labelled examples, with and without pre-training.

Every entry is pre-trained once on raw text: as a causal language model if it can be one, else as a masked one. Then,
for each number of examples and each seed, a pre-trained model and one from scratch are trained on the same rows, with
the same settings and budget.

    DIR/runs/ENTRY/pretrained            the run on raw text
    DIR/runs/ENTRY/100-seed-1            from scratch, on 100 examples; 100-seed-1-pretrained: the same, pre-trained
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

from seqloom.compare.field import Field
from seqloom.compare.plan import Pretraining
from seqloom.core.config import merge
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.lab import statistics
from seqloom.lab.entries import Sized, changed
from seqloom.lab.job import Job, Result
from seqloom.lab.jobs import FINALS, TRIALS, Jobs
from seqloom.runs.configure import configure
from seqloom.runs.material import Material
from seqloom.runs.registry import find_config
from seqloom.runs.settings import RunConfig
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import TokenizerOptions

_TEACHERS = ("language_model", "masked_lm")  # a model is pre-trained on the first that accepts it
_WAYS = ("scratch", "pretrained")

Submit = Callable[[Sequence[Job]], list[Future[Result]]]
Wait = Callable[[Sequence[Future[Result]]], list[Result]]


class Transfer:
    def __init__(self, jobs: Jobs, pretraining: Pretraining, field: Field) -> None:
        """Validate before any job starts."""
        self.jobs, self.pretraining = jobs, pretraining
        if not field.task.encodes:
            raise UserError(f"--pretrain: {field.task.name} has no encoder to pre-train; only understanding tasks do")
        if (most := pretraining.examples[-1]) > (rows := len(field.reading.rows["train"])):
            raise UserError(f"--examples {most}: the training set has only {rows:,} rows; use smaller numbers")
        try:
            tokenizer = Tokenizer.load(jobs.tokenizer(field.entries[0]))
        except UserError:
            raise UserError("--pretrain: this task reads measurements, not text; leave the option out") from None
        self.teachers = {name: find_config("tasks", name)().build(tokenizer) for name in _TEACHERS}
        self.configs = {sized.entry.name: self._configure(sized) for sized in field.entries}
        config = next(iter(self.configs.values()))
        self.raw = {part: source.hash for part, source in Material(config).parts.items()}

    @property
    def count(self) -> int:
        """Number of further runs."""
        return len(self.configs) * (1 + len(_WAYS) * len(self.pretraining.examples) * len(self.jobs.seeds))

    @property
    def amount(self) -> float:
        """Their training, in full runs."""
        return self.count * self.jobs.rules.trial_share

    def work(self, entries: Sequence[Sized], submit: Submit, wait: Wait) -> dict[str, Json]:
        """By entry name: its pre-training task, and its scores for each number of examples."""
        pretraining_runs = submit([self._pretrain(sized) for sized in entries])
        scratch = [submit(self._few(sized, "scratch")) for sized in entries]
        pretrained = wait(pretraining_runs)
        finetuned = [
            submit(self._few(sized, "pretrained")) if result["state"] == "done" else []
            for sized, result in zip(entries, pretrained, strict=True)
        ]
        found = {}
        for sized, result, *futures in zip(entries, pretrained, scratch, finetuned, strict=True):
            ways = [wait(each) for each in futures]
            found[sized.entry.name] = self._summary(sized, result, dict(zip(_WAYS, ways, strict=True)))
        return found

    def _configure(self, sized: Sized) -> RunConfig:
        """Settings for pre-training an entry: its model and tokenizer, and the defaults of the pre-training task."""
        kind, limit = sized.blueprint.kind, sized.blueprint.limit
        teacher = next(name for name, task in self.teachers.items() if kind in task.accepts)
        task = find_config("tasks", teacher)
        own = {option: sized.config.tokenizer[option] for option in TokenizerOptions.model_fields}
        length = min(limit or task.model_fields["length"].default, task.model_fields["length"].default)
        flags: Json = {"task.name": teacher, "task.length": length, "data.train": self.pretraining.text}
        flags["data.encoding"] = sized.config.data["encoding"]
        flags |= {f"model.{option}": value for option, value in sized.config.model.items()}
        flags |= {f"tokenizer.{option}": value for option, value in own.items()}
        config = configure(None, merge(task.shared, flags))
        budget = sized.budget(self.pretraining.budget)
        train = changed(config.train, seed=self.jobs.rules.seed, **self.jobs.common(sized), **budget)
        return config.model_copy(update={"train": train})

    def _pretrain(self, sized: Sized) -> Job:
        config = self.configs[sized.entry.name]
        teacher = self.teachers[config.task["name"]]
        job = self.jobs.fit(config, sized, "pretrained", ["valid"], self.raw)
        return job | {"title": "pre-training", "size": 1.0, "turn": [TRIALS], "metric": teacher.metric, "lower": True}

    def _few(self, sized: Sized, way: str) -> list[Job]:
        return [self._fit(sized, way, few, seed) for seed in self.jobs.seeds for few in self.pretraining.examples]

    def _fit(self, sized: Sized, way: str, examples: int, seed: int) -> Job:
        rules, name = self.jobs.rules, f"{examples}-seed-{seed}"
        config = self.jobs.configured(sized, seed, rules.trial_share)
        update: Json = {"data": config.data | {"examples": examples, "draw": seed}}
        if way == "pretrained":
            update["train"] = changed(config.train, start=str(self._folder(sized)))
            name += "-pretrained"
        known = {part: hash for part, hash in self.jobs.hashes.items() if part != "train"}
        job = self.jobs.fit(config.model_copy(update=update), sized, name, ["test"], known)
        title = f"{examples:,} examples, seed {seed}" + (", pre-trained" if way == "pretrained" else "")
        return job | {
            "title": title,
            "size": rules.trial_share,
            "turn": [FINALS],
            "drawn from": self.jobs.hashes["train"],
        }

    def _folder(self, sized: Sized) -> Path:
        return self.jobs.folder(sized, "pretrained")

    def _summary(self, sized: Sized, pretrained: Result, ways: Mapping[str, list[Result]]) -> Json:
        teacher = self.configs[sized.entry.name].task["name"]
        described = {"teacher": teacher, "teacher_title": list(self.teachers[teacher].title)}
        every = [pretrained, *(result for results in ways.values() for result in results)]
        if failed := next((result for result in every if result["state"] != "done"), None):
            return described | {"error": failed.get("error"), "points": []}
        scores = {way: [r["summary"]["scores"]["test"][self.jobs.score.name] for r in results]
                  for way, results in ways.items()}  # fmt: skip
        points = []
        for place, examples in enumerate(self.pretraining.examples):
            by_seed = {way: found[place :: len(self.pretraining.examples)] for way, found in scores.items()}
            gains = [after - before for before, after in zip(*by_seed.values(), strict=True)]
            known = {way: asdict(statistics.interval(found)) for way, found in by_seed.items()}
            points.append({"examples": examples} | known | {"gain": asdict(statistics.interval(gains))})
        summary = pretrained["summary"]
        return described | {"tokens": summary["tokens"], "seconds": summary["seconds"], "points": points}
