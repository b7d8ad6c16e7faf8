"""`fit`, from data to a finished run: prepare, train (or go on training), evaluate, write it all down.

Issued again, it continues an interrupted run bit for bit, and does nothing on a finished one.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import nn

import seqloom
from seqloom import runs
from seqloom.core.errors import RunError, UserError
from seqloom.core.network import CountingModel
from seqloom.core.run import RunConfig, RunFolder
from seqloom.core.task import Task
from seqloom.data.stream import TokenStream, prepare
from seqloom.data.text import Source
from seqloom.tokenizers import Tokenizer, train_tokenizer
from seqloom.train.checkpoint import load_weights, weights
from seqloom.train.counting import count
from seqloom.train.engine import Engine
from seqloom.train.loop import Trainer
from seqloom.train.memory import check_memory
from seqloom.train.progress import Reporter, Silent, reporter

# What may change when a run goes on; anything else would make it another run.
_FREE = {
    "steps",
    "tokens",
    "seconds",
    "patience",
    "evaluate_every",
    "save_every",
    "log_every",
    "keep",
    "threads",
    "tensorboard",
    "device",
}


def fit(
    recipe: str | Path | None = None,
    *,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    quiet: bool = False,
    command: str = "",
    **flags: Any,
) -> runs.Run:
    """Flags: task, data, valid, test, model; anything else by `overrides` like "train.steps=200"."""
    sections = {
        "task": "task.name",
        "model": "model.name",
        "data": "data.train",
        "valid": "data.valid",
        "test": "data.test",
    }
    if strange := flags.keys() - sections.keys():
        raise UserError(f"fit has no option {', '.join(sorted(strange))}; use overrides=['section.option=value']")
    given = {sections[k]: v for k, v in flags.items() if v is not None}
    config = runs.configure(Path(recipe) if recipe else None, given, overrides)
    folder = (
        RunFolder(Path(out)) if out else RunFolder.new(Path("runs"), f"{config.task['name']}-{config.model['name']}")
    )
    engine = Engine(config.train)
    with engine.running():
        talk: Reporter = Silent() if quiet or not engine.main else reporter()
        try:
            if not engine.main:
                engine.wait()  # the main process holds the folder, prepares the data and writes the record
                return _Fit(config, folder, engine, talk, command).run()
            with folder.lock():
                return _Fit(config, folder, engine, talk, command).run()
        finally:
            talk.close()


class _Fit:
    def __init__(self, config: RunConfig, folder: RunFolder, engine: Engine, talk: Reporter, command: str) -> None:
        self.config, self.folder, self.engine, self.talk, self.command = config, folder, engine, talk, command

    def run(self) -> runs.Run:
        previous = self.folder.record() if (self.folder.path / "run.json").exists() else None
        self.config = self._agreed(previous)
        if previous and self.folder.summary() and previous["config"] == self._dumped():
            if self.engine.main:
                self.engine.wait()
            self.talk.say(f"{self.folder.path}: finished already, nothing to do")
            return runs.load(self.folder.path)
        parts = runs.open_parts(self.config.data)
        self._same_data(previous, parts)
        tokenizer = self._tokenizer(parts["train"], previous)
        streams = {part: self._prepare(part, source, tokenizer) for part, source in parts.items()}
        _check_vocabulary(streams["train"], tokenizer)
        task = runs.task_config(self.config).build(tokenizer)
        model = self._model(task)
        if self.engine.main and (previous is None or previous["config"] != self._dumped()):
            self.folder.write_record(self._record(parts, tokenizer, model))
        if self.engine.main:
            self.engine.wait()  # now the others find everything in place
        seconds = self._train(model, task, streams)
        return self._finish(model, task, tokenizer, streams, seconds)

    def _agreed(self, previous: Mapping[str, Any] | None) -> RunConfig:
        """On resume, the recorded thread count is kept; only what leaves the run the same run may differ."""
        if previous is None:
            threads = self.config.train.threads or torch.get_num_threads()
            torch.set_num_threads(threads)
            return self.config.model_copy(update={"train": self.config.train.model_copy(update={"threads": threads})})
        before = RunConfig.model_validate(previous["config"])
        threads = self.config.train.threads or before.train.threads
        torch.set_num_threads(threads)
        now = self.config.model_copy(update={"train": self.config.train.model_copy(update={"threads": threads})})
        changed = _differences(before.model_dump(), now.model_dump())
        if blocked := [c for c in changed if c.split("=")[0].removeprefix("train.") not in _FREE]:
            raise UserError(f"{self.folder.path} is another run ({'; '.join(blocked)}); choose another --out")
        if changed:
            self.talk.say(
                f"changed: {'; '.join(changed)}; from here on the run is not bit-identical to an uninterrupted one"
            )
        if previous["versions"] != _versions():
            self.talk.say("made with other versions; from here on the run is not bit-identical to an uninterrupted one")
        return now

    def _same_data(self, previous: Mapping[str, Any] | None, parts: Mapping[str, Source]) -> None:
        for part, known in (previous or {}).get("data", {}).items():
            if part in parts and parts[part].hash != known["hash"]:
                raise UserError(
                    f"{parts[part].name}: the {part} text has changed since the run began (was {known['hash'][:12]}, "
                    f"is {parts[part].hash[:12]}); restore it, or choose another --out"
                )

    def _tokenizer(self, source: Source, previous: Mapping[str, Any] | None) -> Tokenizer:
        place = self.folder.path / "tokenizer"
        if previous is not None:
            tokenizer = Tokenizer.load(self.folder.published("tokenizer"))
            if tokenizer.hash != previous["tokenizer"]["hash"]:
                raise UserError(
                    f"{place}: the tokenizer has changed since the run began (was {previous['tokenizer']['hash'][:12]}, "
                    f"is {tokenizer.hash[:12]}); restore it, or choose another --out"
                )
            return tokenizer
        if not self.engine.main:
            return Tokenizer.load(self.folder.published("tokenizer"))
        c: Any = runs.task_config(self.config)
        tokenizer = train_tokenizer(
            c.tokenizer, source.pieces(), size=c.vocabulary, min_count=c.min_count, split=c.split
        )
        self.folder.publish("tokenizer", tokenizer.files())
        return tokenizer

    def _prepare(self, part: str, source: Source, tokenizer: Tokenizer) -> TokenStream:
        size = max(1, source.bytes)

        def progress(done: int) -> None:
            self.talk.update(min(1.0, done / size), {"preparing": part, "bytes": done})

        return prepare(source, tokenizer, progress=progress if size > 10_000_000 else None)

    def _model(self, task: Task) -> nn.Module:
        check_memory(runs.blueprint(self.config, task), self.config.train, runs.task_config(self.config), task)
        torch.manual_seed(self.config.train.seed)
        model = runs.model_config(self.config).assemble(task)
        runs.check_lengths(runs.task_config(self.config), model)
        return model

    def _train(self, model: nn.Module, task: Task, streams: Mapping[str, TokenStream]) -> float:
        train, valid = streams["train"], streams.get("valid")
        parameters = runs.count_parameters(model)
        told = f"{self.config.model['name']}: {parameters:,} parameters, {len(train):,} training tokens"
        self.talk.say(f"{told}, vocabulary {len(train.counts):,}, {self.engine.device}, seed {self.config.train.seed}")
        if isinstance(model, CountingModel):
            count(model, train)
            return 0.0
        trainer = Trainer(
            model, task, self.config.train, self.engine, self.folder, self.talk, train.bytes / max(1, len(train))
        )
        if newest := self.folder.newest_whole(self.talk.say):
            self.talk.say(f"continuing from step {newest[0]:,}")
            trainer.restore(newest[1])
        progress = trainer.fit(train, valid)
        if progress.best_step is not None and progress.best_step != progress.step:
            best = load_file(self.folder.checkpoint(progress.best_step) / "model.safetensors")
            load_weights(trainer.model, best, self.engine)
        self.progress = progress
        return progress.seconds

    def _finish(
        self, model: nn.Module, task: Task, tokenizer: Tokenizer, streams: Mapping[str, TokenStream], seconds: float
    ) -> runs.Run:
        """Publish the best weights, score them on every part, and write the summary last: it marks the end."""
        whole = {name: self.engine.whole(t).contiguous() for name, t in weights(model).items()}
        naive = task.naive(streams["train"])
        if self.engine.main:
            files = {"model.safetensors": save(whole), "naive.json": json.dumps(naive).encode()}
            self.folder.publish_model(files | tokenizer.files())
        scores = {
            part: task.evaluate(model, stream, naive=naive) for part, stream in streams.items() if part != "train"
        }
        progress = getattr(self, "progress", None)
        summary = {
            "parameters": sum(t.numel() for t in whole.values()),
            "seconds": round(seconds, 3),
            "steps": progress.step if progress else 0,
            "tokens": progress.tokens if progress else len(streams["train"]),
            "best_step": progress.best_step if progress else None,
            "scores": scores,
        }
        if self.engine.main:
            self.folder.write_summary(summary)
        self.engine.wait()
        return runs.load(self.folder.path)

    def _record(self, parts: Mapping[str, Source], tokenizer: Tokenizer, model: nn.Module) -> dict[str, Any]:
        return {
            "config": self._dumped(),
            "command": self.command,
            "versions": _versions(),
            "device": str(self.engine.device),
            "processes": self.engine.world,
            "parameters": runs.count_parameters(model),
            "data": {part: {"name": s.name, "bytes": s.bytes, "hash": s.hash} for part, s in parts.items()},
            "tokenizer": {"kind": tokenizer.kind, "size": tokenizer.size, "hash": tokenizer.hash},
        }

    def _dumped(self) -> dict[str, Any]:
        return json.loads(self.config.model_dump_json())


def _versions() -> dict[str, str]:
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


def _check_vocabulary(train: TokenStream, tokenizer: Tokenizer) -> None:
    if (distinct := int((train.counts > 0).sum())) < 2:
        raise UserError(f"the training text has {distinct} distinct token; there is nothing to predict")
    if train.counts[tokenizer.unk] > 0.5 * len(train):
        raise RunError("more than half of the training text is unknown to the tokenizer; lower task.min_count")
