"""`fit`, from data to a finished run: prepare, train (or go on training), evaluate, write it all down.

Issued again, it continues an interrupted run bit for bit, and does nothing on a finished one.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save

import seqloom
from seqloom.core.errors import UserError
from seqloom.core.network import CountingModel, SequenceModel, SolvingModel
from seqloom.core.progress import Reporter, Silent
from seqloom.core.task import Order, Task
from seqloom.data.shapes import material_of
from seqloom.data.shapes.shape import Part, Vocabulary
from seqloom.runs.configure import configure
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import blueprint, check_reading, count_parameters, model_config, task_config
from seqloom.runs.run import Run, load
from seqloom.runs.settings import RunConfig
from seqloom.runs.terminal import reporter
from seqloom.tokenizers import Tokenizer
from seqloom.train.checkpoint import load_weights, weights
from seqloom.train.counting import count
from seqloom.train.engine import Engine
from seqloom.train.loop import Judge, Progress, Trainer
from seqloom.train.memory import check_memory
from seqloom.train.transfer import freeze, transfer

# What may change when a run goes on; anything else would make it another run.
_BUDGET = {"steps", "tokens", "seconds", "patience"}
_FREE = _BUDGET | {"evaluate_every", "save_every", "log_every", "keep", "threads", "tensorboard", "device"}

_FLAGS = {
    "task": "task.name",
    "model": "model.name",
    "data": "data.train",
    "valid": "data.valid",
    "test": "data.test",
    "start": "train.start",
}


def fit(
    recipe: str | Path | None = None,
    *,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    quiet: bool = False,
    command: str = "",
    **flags: Any,
) -> Run:
    """Flags: task, data, valid, test, model, start; anything else by `overrides` like "train.steps=200"."""
    if strange := flags.keys() - _FLAGS.keys():
        raise UserError(f"fit has no option {', '.join(sorted(strange))}; use overrides=['section.option=value']")
    given = {_FLAGS[k]: v for k, v in flags.items() if v is not None}
    config = configure(Path(recipe) if recipe else None, given, overrides)
    stem = f"{config.task['name']}-{config.model['name']}"
    engine = Engine(config.train)
    Order(config.train.batch, accumulate=config.train.accumulate, world=engine.world)  # can it be divided?
    if out is None and engine.world > 1:
        raise UserError("several processes need one folder: give --out")
    folder = RunFolder(Path(out)) if out else RunFolder.new(Path("runs"), stem)
    talk: Reporter = Silent() if quiet or not engine.main else reporter()
    return conduct(config, folder, engine, talk, command)


def conduct(
    config: RunConfig,
    folder: RunFolder,
    engine: Engine,
    talk: Reporter,
    command: str = "",
    *,
    tokenizer: Vocabulary | None = None,
    scored: Collection[str] = ("valid", "test"),
    judge: Judge | None = None,
    compared: bool = False,
) -> Run:
    """One run in its folder, from the beginning or from where it was left.

    `tokenizer`: one that was made before; `scored`: the parts it is scored on at the end;
    `judge`: asked at every validation whether to go on; `compared`: it is one of many, so that validation is scored by
    the metric alone, and whoever compares sees to the baselines that take time.
    """
    job = _Fit(config, folder, engine, talk, command, tokenizer, scored, judge, compared)
    if job.finished():
        talk.say(f"{folder.path}: finished already, nothing to do")
        return load(folder.path)
    try:
        with engine.running():
            if engine.main:
                with folder.lock():
                    return job.run()
            engine.wait()  # the main process holds the folder, prepares the data and writes the record
            return job.run()
    finally:
        talk.close()


class _Fit:
    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        engine: Engine,
        talk: Reporter,
        command: str,
        tokenizer: Vocabulary | None,
        scored: Collection[str],
        judge: Judge | None,
        compared: bool,
    ) -> None:
        self.folder, self.engine, self.talk, self.command = folder, engine, talk, command
        self.given, self.scored, self.judge, self.compared = tokenizer, scored, judge, compared
        self.previous = folder.record() if (folder.path / "run.json").exists() else None
        self.config = self._agreed(config)
        self.material = material_of(task_config(self.config))
        self.progress = Progress()

    def finished(self) -> bool:
        return bool(self.previous and self.folder.summary() and self.previous["config"] == self._dumped())

    def run(self) -> Run:
        parts = self.material.open_parts(self.config.data)
        self._same_data(parts)
        tokenizer = self._tokenizer(parts["train"])
        rows = self.material.prepare_parts(parts, tokenizer, self.talk)
        task = task_config(self.config).build(tokenizer)
        model = self._model(task)
        if remark := task.check_rows(model, rows):
            self.talk.say(remark)
        if self.engine.main:
            self.folder.forget_summary()
            self.folder.write_record(self._record(parts, tokenizer, model))
            self.engine.wait()  # now the others find everything in place
        self._train(model, task, rows, tokenizer)
        return self._finish(model, task, tokenizer, rows)

    def _agreed(self, config: RunConfig) -> RunConfig:
        """Threads are part of a run: the recorded count is kept. Little else may change when a run goes on."""
        before = self.folder.config() if self.previous else None
        threads = config.train.threads or (before.train.threads if before else torch.get_num_threads())
        torch.set_num_threads(threads)
        now = config.model_copy(update={"train": config.train.model_copy(update={"threads": threads})})
        changed = _differences(before.model_dump(), now.model_dump()) if before else []
        if blocked := [c for c in changed if c.partition("=")[0].removeprefix("train.") not in _FREE]:
            raise UserError(f"{self.folder.path} is another run ({'; '.join(blocked)}); choose another --out")
        if self.previous and self.previous["versions"] != versions():
            changed.append("versions")
        if changed:
            self.talk.say(f"changed: {'; '.join(changed)}: no longer bit-identical to an uninterrupted run")
        return now

    def _same_data(self, parts: Mapping[str, Part]) -> None:
        for part, known in (self.previous or {}).get("data", {}).items():
            if part in parts and parts[part].hash != known["hash"]:
                raise UserError(
                    f"{parts[part].name}: the {part} part has changed since the run began (was {known['hash'][:12]}, "
                    f"is {parts[part].hash[:12]}); restore it, or choose another --out"
                )

    def _tokenizer(self, train: Part) -> Vocabulary:
        """Made by the main process of a new run; found in the folder by everyone else."""
        if self.engine.main and self.previous is None:
            tokenizer = self.given or self._new_tokenizer(train)
            self.folder.publish("tokenizer", tokenizer.files())
            return tokenizer
        tokenizer = self.material.load_tokenizer(self.folder.published("tokenizer"))
        known = self.previous["tokenizer"]["hash"] if self.previous else tokenizer.hash
        if tokenizer.hash != known:
            raise UserError(
                f"{self.folder.path}: the tokenizer has changed since the run began (was {known[:12]}, "
                f"is {tokenizer.hash[:12]}); restore it, or choose another --out"
            )
        return tokenizer

    def _new_tokenizer(self, train: Part) -> Vocabulary:
        """Made for this data; the part that cuts texts comes from the run that it begins with, if there is one."""
        task, start = task_config(self.config), self.config.train.start
        known = Tokenizer.load(RunFolder(Path(start)).model_files()) if start else None
        return self.material.make_tokenizer(task, train, known)

    def _model(self, task: Task) -> SequenceModel:
        check_memory(blueprint(self.config, task), self.config.train, task_config(self.config), task)
        torch.manual_seed(self.config.train.seed)
        model = model_config(self.config).assemble(task)
        check_reading(task_config(self.config), model)
        if start := self.config.train.start:
            known = load_file(RunFolder(Path(start)).model_files() / "model.safetensors")
            self.talk.say(transfer(model, known, start))
        freeze(model, self.config.train.freeze)
        return model

    def _train(self, model: SequenceModel, task: Task, rows: Mapping[str, Any], tokenizer: Vocabulary) -> None:
        train, valid = rows["train"], rows.get("valid")
        parameters = count_parameters(model)
        learns = f"{parameters:,} parameters" if parameters else "counting"
        told = f"{self.config.model['name']}: {learns}, {self.material.describe(train, tokenizer)}"
        self.talk.say(f"{told}, {self.engine.device}, seed {self.config.train.seed}")
        if isinstance(model, CountingModel):
            started = time.perf_counter()
            stream = task.stream(train)
            count(model, stream)
            self.progress = Progress(tokens=len(stream), seconds=time.perf_counter() - started)
            return
        if isinstance(model, SolvingModel):
            started = time.perf_counter()
            solved = model.solve(task.lessons(train))
            self.progress = Progress(tokens=solved, seconds=time.perf_counter() - started)
            return
        size = self.material.bytes_per_token(train, tokenizer) if task.surprises else None
        trainer = Trainer(model, task, self.config.train, self.engine, self.folder, self.talk, size, self.judge)
        if self.config.train.compile:
            self.talk.say("compiling the training step: the first step takes a minute or two")
        if newest := self.folder.newest_whole(self.talk.say):
            self.talk.say(f"continuing from step {newest[0]:,}")
            trainer.restore(newest[1])
        elif self.engine.main:
            self.folder.trim_metrics(0)
        self.progress = trainer.fit(train, valid)
        if self.progress.best_step not in (None, self.progress.step):
            best = self.folder.checkpoint(self.progress.best_step) / "model.safetensors"
            load_weights(trainer.model, load_file(best), self.engine)

    def _finish(self, model: SequenceModel, task: Task, tokenizer: Vocabulary, rows: Mapping[str, Any]) -> Run:
        """Publish the best weights, score them on every part, and write the summary last: it marks the end."""
        if "valid" in rows and not isinstance(model, CountingModel):
            task.settle(model, rows["valid"])
        whole = {name: self.engine.whole(t).contiguous() for name, t in weights(model).items()}
        naive = task.naive(rows["train"])
        scores = self._scores(model, task, rows, naive)
        if self.engine.main:
            files = {"model.safetensors": save(whole), "naive.json": json.dumps(naive).encode()}
            self.folder.publish_model(files | tokenizer.files())
            self.folder.write_summary(
                {
                    "parameters": count_parameters(model) or sum(t.numel() for t in whole.values()),
                    "seconds": round(self.progress.seconds, 3),
                    "steps": self.progress.step,
                    "tokens": self.progress.tokens,
                    "best_step": self.progress.best_step,
                    "scores": scores,
                }
            )
        self.engine.wait()
        return load(self.folder.path)

    def _scores(
        self, model: SequenceModel, task: Task, rows: Mapping[str, Any], naive: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        parts = {part: stream for part, stream in rows.items() if part in self.scored}
        scores = {
            part: task.evaluate(model, stream, naive=naive, brief=self.compared and part == "valid")
            for part, stream in parts.items()
        }
        if self.engine.main and not self.compared:
            for part, found in task.baselines(rows["train"], parts).items():
                scores[part]["baselines"] = scores[part].get("baselines", {}) | found
        return scores

    def _record(self, parts: Mapping[str, Part], tokenizer: Vocabulary, model: SequenceModel) -> dict[str, Any]:
        return {
            "config": self._dumped(),
            "command": self.command,
            "versions": versions(),
            "device": str(self.engine.device),
            "processes": self.engine.world,
            "parameters": count_parameters(model),
            "data": {part: {"name": s.name, "bytes": s.bytes, "hash": s.hash} for part, s in parts.items()},
            "tokenizer": {"kind": tokenizer.kind, "size": tokenizer.size, "hash": tokenizer.hash},
        }

    def _dumped(self) -> dict[str, Any]:
        return json.loads(self.config.model_dump_json())


def versions() -> dict[str, str]:
    return {
        "seqloom": seqloom.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{sys.platform} {platform.machine()}, {os.cpu_count()} cores",
    }


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`train.steps=200 (was 100)` for every option that differs."""
    return [
        f"{section}.{option}={value!r} (was {before.get(section, {}).get(option)!r})"
        for section, options in now.items()
        for option, value in options.items()
        if before.get(section, {}).get(option) != value
    ]
