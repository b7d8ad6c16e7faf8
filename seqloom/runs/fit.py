"""`fit`, from data to a finished run: prepare, train (or continue training), evaluate and record.

Running the same command again continues an interrupted run bit for bit, finishes one whose result was damaged, and does
nothing on a finished one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Facts, Json, Rows, Vocabulary
from seqloom.core.task import AnyTask, Order
from seqloom.data.memory import Data
from seqloom.data.shapes.columns import Columns
from seqloom.layers.lora import adapter_files, describe
from seqloom.layers.tensors import read_tensors
from seqloom.runs import choosing, methods
from seqloom.runs.base import Base, base_of, borrows, predicts_the_same, recorded_base, restrict, tokenizer_of
from seqloom.runs.build import blueprint, check_size, count_parameters
from seqloom.runs.configure import Request, read_request
from seqloom.runs.durable import fault
from seqloom.runs.folder import RunFolder
from seqloom.runs.given import Named, Section, check_place, place, settings
from seqloom.runs.material import Material
from seqloom.runs.record import differences, plain, summary, versions, with_task
from seqloom.runs.registry import check_options, current, model_config
from seqloom.runs.run import Run, load
from seqloom.runs.settings import FREE, RunConfig
from seqloom.runs.terminal import reporter
from seqloom.train.checkpoint import load_weights, weights
from seqloom.train.clock import Clock
from seqloom.train.engine import Engine
from seqloom.train.loop import Judge, Progress, Trainer
from seqloom.train.pace import estimate, told_time
from seqloom.train.transfer import transfer


def fit(
    recipe: str | Path | None = None,
    *,
    data: Data = None,
    task: Named = None,
    model: Named = None,
    valid: Data = None,
    test: Data = None,
    encoding: str | None = None,
    start: str | Path | None = None,
    out: str | Path | None = None,
    columns: Columns | None = None,
    train: Section = None,
    lora: Section = None,
    tokenizer: Section = None,
    options: Section = None,
    overrides: Sequence[str] = (),
    choose: bool = True,
    quiet: bool = False,
    command: str = "",
) -> Run:
    """Train a model, or continue training it.

    `data`, `valid`, `test`: paths, or data in memory: a list of texts, `(X, y)`, a list of pairs or of dicts, a pandas
    or polars data frame, a Hugging Face dataset, an array of numbers; without `task`, its form shows the task.
    `encoding`: of files that are not UTF-8, like "gb18030"; `task`, `model`: a name, or a dict of options with a
    "name"; `train`, `lora`, `tokenizer`: dicts of options, like {"steps": 200}; `columns`: names by role, like
    {"label": "stars"}; `options`: any setting by its path, like {"data.season": 24}; `overrides`: as texts, as after
    -o. `recipe`: settings in a TOML file; `start`: a run, weights:NAME or hf:PATH to start from (--from); `out`: the
    run folder, by default a new one under runs/; `choose`: settings that are not given are chosen from the data (with
    a recipe, only the columns), else their listed defaults hold; `command`: recorded with the run.
    """
    names, overrides = settings(overrides, options, task=task, model=model, train=train, lora=lora, tokenizer=tokenizer)
    placed = place({"train": data, "valid": valid, "test": test}, names.get("task"), overrides, recipe)
    overrides = [*placed.overrides, *overrides]
    flags = {
        "task.name": placed.task, "model.name": names.get("model"),
        **{f"data.{part}": spec for part, spec in placed.specs.items()},
        "data.encoding": encoding, "train.start": None if start is None else str(start),
    }  # fmt: skip
    main = int(os.environ.get("RANK", 0)) == 0
    talk: Reporter = Silent() if quiet or not main else reporter()
    given = {path: value for path, value in flags.items() if value is not None}
    request = read_request(Path(recipe) if recipe else None, given, overrides, talk.say, columns or {})
    if out:
        check_place(Path(out), (str(request.given["data"].get(part)) for part in ("train", "valid", "test")))
    config, choices = _settle(request, Path(out) if out else None, choose, only_columns=recipe is not None)
    engine = Engine(config.train)
    Order(config.train.batch, accumulate=config.train.accumulate, world=engine.world)  # checks divisibility
    if out is None and engine.world > 1:
        raise UserError("several processes need a common run folder; set --out")
    stem = f"{config.task['name']}-{config.model['name']}"
    folder = RunFolder(Path(out)) if out else RunFolder.new(Path("runs"), stem)
    return conduct(config, folder, engine, talk, command, chosen=Chosen(request.settings, choices))


@dataclass(frozen=True)
class Chosen:
    """What the user gave, by path, and what was chosen from the data."""

    given: Json
    choices: list[Choice]


def _settle(request: Request, out: Path | None, choose: bool, only_columns: bool) -> tuple[RunConfig, list[Choice]]:
    """Complete settings: those of the run in this folder, if there is one; else chosen from the data.

    `only_columns`: choose only which column is what.
    """
    if not choose:
        return request.settle(), []
    if out and (out / "run.json").exists():
        before = RunFolder(out)
        check_options(before.config(), before.path / "run.json")
        return request.settle(choosing.recorded(before.record())), []
    choices = choosing.choose(request, only_columns)
    return request.settle({choice.path: choice.value for choice in choices}), choices


def conduct(
    config: RunConfig,
    folder: RunFolder,
    engine: Engine,
    talk: Reporter,
    command: str = "",
    *,
    vocabulary: Vocabulary | None = None,
    scored: Collection[str] = ("valid", "test"),
    judge: Judge | None = None,
    compared: bool = False,
    chosen: Chosen | None = None,
) -> Run:
    """Start or continue the run in this folder.

    `vocabulary`: an existing one; `scored`: the parts to score at the end; `judge`: decides at every validation whether
    to continue; `compared`: part of a comparison, so the validation set is scored by the metric only, and the
    comparison runs the slow baselines once for all runs; `chosen`: what was chosen from the data, to print and record.
    """
    job = _Fit(config, folder, engine, talk, command, vocabulary, scored, judge, compared, chosen)
    if run := job.finished():
        talk.say(f"{folder.path}: already finished, nothing to do")
        for remark in folder.remarks():
            talk.say(remark)
        return run
    try:
        with engine.running():
            if engine.main:
                with folder.lock("run.json"):
                    return job.run()
            engine.wait()  # the main process locks the folder, prepares the data and writes the record
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
        vocabulary: Vocabulary | None,
        scored: Collection[str],
        judge: Judge | None,
        compared: bool,
        chosen: Chosen | None,
    ) -> None:
        self.folder, self.engine, self.talk, self.command = folder, engine, talk, command
        self.given, self.scored, self.judge, self.compared = vocabulary, scored, judge, compared
        self.chosen = chosen or Chosen({}, [])
        self.previous = folder.record() if (folder.path / "run.json").exists() else None
        self.before = current(folder.config()) if self.previous else None
        self.settled: Json = (self.previous or {}).get("settled", {})
        self._known_data: Json = (self.previous or {}).get("data", {})
        free = {path: value for path, value in self.settled.items() if path not in self.chosen.given}
        self.config = self._reconcile(with_task(config, free))
        self.material = Material(self.config)
        self.progress = Progress()
        self.base: Base | None = None  # where the weights come from, if not from a random generator
        self.metric = ""  # of the task, which is built from the data

    def finished(self) -> Run | None:
        """The run, if this folder holds it finished and intact; it is not written to."""
        if not self.before or plain(self.before) != plain(self.config):
            return None
        try:
            done = self.folder.summary() is not None and self._kept_vocabulary() is not None
            found = load(self.folder.path) if done else None
        except UserError as problem:
            self.talk.say(f"{fault(problem)}; finishing the run again")
            return None
        if found:
            self.material.check_files(self._known_data)
        return found

    def run(self) -> Run:
        if self.previous and "merged" in self.previous:
            raise UserError(f"{self.folder.path}: a merged run is not trained further; use it with --from in another")
        methods.check(self.config)
        self.material.check_parts(self._known_data)
        vocabulary = self._vocabulary()
        rows = self.material.rows(vocabulary, self.talk)
        task = self.material.task(vocabulary)
        self.metric = task.metric
        model = self._model(task, vocabulary, rows["train"])
        trained = methods.objective(self.config, model, task)
        if note := task.check_rows(model, rows):
            self.talk.say(note)
        self._describe(model, rows["train"], vocabulary)
        self._announce(model, trained, rows)
        if self.engine.main:
            self.folder.forget_summary()
            self.folder.write_record(self._record(vocabulary, model))
            self.engine.wait()  # lets the other processes continue
        if trained:
            self._train(model, trained, rows, vocabulary)
        if trained is not task:
            methods.solve(self.config, model, task, rows["train"], self.progress)
        return self._finish(model, task, vocabulary, rows)

    def _reconcile(self, config: RunConfig) -> RunConfig:
        """Check that only the options in `FREE` have changed; keep the recorded thread count, which affects results."""
        before = self.before
        threads = config.train.threads or (before.train.threads if before else torch.get_num_threads())
        torch.set_num_threads(threads)
        now = config.model_copy(update={"train": config.train.model_copy(update={"threads": threads})})
        changed = differences(before.model_dump(), now.model_dump()) if before else []
        if blocked := [c for c in changed if c.partition("=")[0].removeprefix("train.") not in FREE]:
            raise UserError(f"{self.folder.path} is a different run ({'; '.join(blocked)}); choose another --out")
        if self.previous and self.previous["versions"] != versions():
            changed.append("versions")
        if changed:
            self.talk.say(f"changed: {'; '.join(changed)}: no longer bit-identical to an uninterrupted run")
        return now

    def _vocabulary(self) -> Vocabulary:
        """Made by the main process of a new run; loaded from the folder by all others. A damaged one is made again."""
        if not self.engine.main:
            return self.material.load_vocabulary(self.folder.published("tokenizer"))
        if self.previous and (kept := self._kept_vocabulary()):
            return kept
        vocabulary = self.given or self._new_vocabulary()
        if self.previous and vocabulary.hash != (known := self.previous["tokenizer"]["hash"]):
            raise UserError(
                f"{self.folder.path}: the tokenizer has changed since the run began (was {known[:12]}, "
                f"is {vocabulary.hash[:12]}); restore it, or choose another --out"
            )
        self.folder.publish("tokenizer", vocabulary.files())
        return vocabulary

    def _kept_vocabulary(self) -> Vocabulary | None:
        """That in tokenizer/, if it is intact."""
        try:
            kept = self.material.load_vocabulary(self.folder.published("tokenizer"))
        except UserError as problem:
            self.talk.say(f"{fault(problem)}; making the tokenizer again")
            return None
        return kept if kept.hash == (self.previous or {})["tokenizer"]["hash"] else None

    def _new_vocabulary(self) -> Vocabulary:
        """Fitted to this data, with the tokenizer of the run it starts from, if any."""
        start = self.config.train.start
        return self.material.new_vocabulary(tokenizer_of(start, self.material.shape) if start else None)

    def _model(self, task: AnyTask, vocabulary: Vocabulary, train: Rows) -> SequenceModel:
        config, base = self.config, base_of(self.config, self.folder, again=self.previous is not None)
        plan = blueprint(config, task)
        restrict(plan, base, config)
        if remark := check_size(config, plan, task, task.epoch_tokens(train), self.engine.device.type):
            self.talk.say(remark)
        torch.manual_seed(config.train.seed)
        model = model_config(config).assemble(task)
        task.check_model(model)
        if base:
            head = predicts_the_same(base, config, vocabulary)
            methods.check_head(config, head)
            self.talk.say(transfer(model, base.tensors, base.name, head=head, blank=base.foreign))
        restrict(model, base, config)
        if config.lora.rank:
            self.talk.say(describe(model))
        self.base = base
        return model

    def _describe(self, model: SequenceModel, train: Rows, vocabulary: Vocabulary) -> None:
        parameters = count_parameters(model)
        size = f"{parameters:,} parameters" if parameters else "no trained parameters"
        described = f"{self.config.model['name']}: {size}, {self.material.shape.describe(train, vocabulary)}"
        self.talk.say(f"{described}, {self.engine.device}, seed {self.config.train.seed}")
        if self.config.train.method == "probe" and not self.config.train.start:
            self.talk.say("train.method=probe without --from: the output layer is solved on a random encoder")
        for line in choosing.told(self.chosen.choices, model.descends and methods.descends(self.config)):
            self.talk.say(line)

    def _announce(self, model: SequenceModel, task: AnyTask | None, rows: Mapping[str, Rows]) -> None:
        """Say how long the chosen epochs will take, and cut them to train.minutes; only when a run begins."""
        train = self.config.train
        chosen = any(choice.path == "train.epochs" for choice in self.chosen.choices)
        if task is None or self.previous or not chosen or not model.descends or not train.epochs or train.seconds:
            return
        needed = estimate(model, task, train, self.engine, rows["train"], rows.get("valid"))
        epochs, seconds = needed.within(60 * train.minutes)
        shown = f"{train.epochs:g} epochs" if epochs == train.epochs else f"{epochs:g} of {train.epochs:g} epochs"
        more = f" (all of them: -o train.minutes={needed.seconds / 60:.0f})" if epochs < train.epochs else ""
        stop = f", fewer if {train.patience} validations in a row bring no improvement" if train.patience else ""
        stop += f", fewer once the training loss stays below {train.enough:g}" if train.enough else ""
        said = f"training: {shown}, about {told_time(seconds)} on this machine, from {needed.steps} measured steps"
        self.talk.say(f"{said}{more}{stop}")
        self.config = self.config.model_copy(update={"train": train.model_copy(update={"epochs": epochs})})

    def _train(self, model: SequenceModel, task: AnyTask, rows: Mapping[str, Rows], vocabulary: Vocabulary) -> None:
        train, valid, shape = rows["train"], rows.get("valid"), self.material.shape
        clock = Clock(self.config.train.clock, self.engine.device.type)
        if (read := model.learn(task, train)) is not None:
            self.progress = Progress(tokens=read, **clock.lap()._asdict())
            return
        bytes_per_token = shape.bytes_per_token(train, vocabulary) if task.perplexity else None
        trainer = Trainer(
            model, task, self.config.train, self.engine, self.folder, self.talk, bytes_per_token, self.judge,
            task.epoch_tokens(train),
        )  # fmt: skip
        if self.config.train.compile:
            self.talk.say("compiling the training step: the first step takes a minute or two")
        if newest := self.folder.newest_whole(self.talk.say):
            self.talk.say(f"continuing from step {newest[0]:,}")
            trainer.restore(newest[1])
        elif self.engine.main:
            self.folder.trim_metrics(0)
        self.progress = trainer.fit(train, valid)
        best = self.progress.best_step
        if best is not None and best != self.progress.step:
            saved = self.folder.checkpoint(best) / "model.safetensors"
            load_weights(trainer.model, read_tensors(saved), self.engine)

    def _finish(self, model: SequenceModel, task: AnyTask, vocabulary: Vocabulary, rows: Mapping[str, Rows]) -> Run:
        """Publish the best weights, score them on every part, and write the summary last, which marks the end."""
        if "valid" in rows and isinstance(task, methods.SettledTask):
            self._settle(task.settle(model, rows["valid"]), vocabulary, model)
        whole = {name: self.engine.whole(t).contiguous() for name, t in weights(model).items()}
        naive = task.naive(rows["train"])
        scores = self._scores(model, task, rows, naive)
        if self.engine.main:
            files = adapter_files(model, whole) if self.config.lora.rank else {"model.safetensors": save(whole)}
            self.folder.publish_model(files | {"naive.json": json.dumps(naive).encode()} | vocabulary.files())
            size = sum(map(len, files.values())), self.base.bytes if self.base and borrows(self.config) else 0
            self.folder.write_summary(summary(model, whole, size, self.progress, scores))
        self.engine.wait()
        return load(self.folder.path)

    def _settle(self, choices: Sequence[Choice], vocabulary: Vocabulary, model: SequenceModel) -> None:
        """Record what was chosen on the validation set, so that a loaded run and a repeated command use it."""
        if not choices:
            return
        for choice in choices:
            self.talk.say(f"chosen after training: {choice.path}={choice.value:g}: {choice.reason}")
        self.settled = {choice.path: choice.value for choice in choices}
        self.config = with_task(self.config, self.settled)
        if self.engine.main:
            self.folder.write_record(self._record(vocabulary, model))

    def _scores(self, model: SequenceModel, task: AnyTask, rows: Mapping[str, Rows], naive: Facts) -> dict[str, Json]:
        parts = {part: stream for part, stream in rows.items() if part in self.scored}
        scores = {
            part: task.evaluate(model, stream, naive=naive, brief=self.compared and part == "valid")
            for part, stream in parts.items()
        }
        if self.engine.main and not self.compared:
            for part, found in task.baselines(rows["train"], parts).items():
                scores[part]["baselines"] = scores[part].get("baselines", {}) | found
        return scores

    def _record(self, vocabulary: Vocabulary, model: SequenceModel) -> Json:
        base = {"base": recorded_base(self.base, self.folder)} if self.base else {}
        return base | {
            "config": plain(self.config),
            "given": self.chosen.given,
            "chosen": [choice._asdict() for choice in self.chosen.choices],
            "settled": self.settled,
            "command": self.command,
            "versions": versions(),
            "device": str(self.engine.device),
            "processes": self.engine.world,
            "parameters": count_parameters(model),
            "metric": self.metric,
            "data": self.material.facts(),
            "tokenizer": {"kind": vocabulary.kind, "size": vocabulary.size, "hash": vocabulary.hash},
        }
