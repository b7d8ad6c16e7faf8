"""The entries and baselines of a comparison, at matched size, on the same data in the same order."""

from __future__ import annotations

import os
import shlex
from typing import Any, Literal

from seqloom.compare.defaults import allot, per_run, within
from seqloom.compare.plan import Plan
from seqloom.compare.readings import Readings
from seqloom.core.config import as_overrides
from seqloom.core.errors import RunError, UserError
from seqloom.core.model import ModelConfig
from seqloom.core.progress import Reporter
from seqloom.core.rows import Json
from seqloom.core.score import Score
from seqloom.core.task import AnyTask
from seqloom.lab import search, started
from seqloom.lab.entries import OWN, Entry, Sized, changed, check_options, parse_entries, sizes
from seqloom.lab.matching import match_size
from seqloom.lab.protocols import latency_unit
from seqloom.lab.reading import Reading
from seqloom.lab.rules import Budget
from seqloom.lab.rungs import branched, scheduled
from seqloom.runs.base import check_base
from seqloom.runs.build import blueprint
from seqloom.runs.choosing import told
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.methods import descends
from seqloom.runs.registry import find_config, model_config, names, task_config
from seqloom.runs.settings import RunConfig
from seqloom.tokenizers.options import NoTokenizer
from seqloom.train.engine import choose_device
from seqloom.train.memory import check_memory
from seqloom.train.pace import told_time

_TEST_SHARE = 0.1  # of the data, if no test set is given
_WAY_OUT = "--params or train.batch"  # of too little memory


class Field:
    """`entries` are tuned, trained and compared; `baselines` are fitted by counting or in closed form."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        progress: Reporter,
        absolute: bool = False,
        jobs: int = 1,
        allotted: float | None = None,
        size: int | None = None,
    ) -> None:
        """Of a comparison that is continued, `allotted`: seconds per run, where the plan gives minutes for all of it
        (with a ladder of budgets, tokens per run, where it gives a time); `size`: the common size it began with."""
        named = parse_entries(plan.models)
        check_options(named, plan.overrides, plan.task)
        plan = _across_tokenizers(plan, named)
        self.plan, self.absolute = plan, absolute
        configs = [self._config(entry) for entry in named]
        scratch = [n for n, config in enumerate(configs) if not config.train.start]
        if len(scratch) < len(named) and plan.pretraining:
            raise UserError("--pretrain: only for models that are trained from scratch; leave the others out")
        if not scratch and plan.params:
            raise UserError("--params: models that start from trained weights have their size; leave it out")
        # Entries from scratch share a tokenizer, and baselines use it too; a prompt is no task for them.
        first = scratch[0] if scratch else next((n for n, config in enumerate(configs) if descends(config)), 0)
        self._say_choices(named[first], progress)
        self.readings = Readings(configs[first], folder, progress)
        own = [self._at_own_size(entry, config) for entry, config in zip(named, configs, strict=True)]
        self.column = 0 if plan.count == "all" else 1
        trained = [sized for sized in own if not sized.counts]
        if not any(sized.trained for sized in trained):
            raise UserError("--models: these all need no training; name at least one that is trained, for example lstm")
        self.readings.check_budget(plan.budget)
        for sized in own:
            if started.overlaps(sized.config, self.data):
                progress.say(
                    f"{sized.entry.name}: {sized.config.train.start} was trained on the file that this test set is "
                    "taken from, so its score may be too good; give the test set with --test, in a file of its own"
                )
        self.target = plan.params or size or self._size_for_the_data([sized.entry for sized in trained])
        self._own = {sized.entry.name: sized for sized in trained}
        self.entries = [self._at_size(sized) for sized in trained]
        self.baselines = self._closed_form([sized for sized in own if sized.counts])
        self.allotted = None
        if branched(plan.ladder) and plan.budget.kind in ("minutes", "seconds"):
            self.allotted = self._in_tokens(jobs, allotted, progress)
        elif plan.budget.kind == "minutes":
            self.allotted = self._allot(jobs, allotted, progress)
        if branched(plan.ladder):
            self.entries = [scheduled(s, self.plan.budget) if s.trained else s for s in self.entries]
        for sized in self.entries:
            sized.check_budget(self.plan.budget, self.plan.trial_share if self.plan.trials else 1.0)

    @property
    def reading(self) -> Reading:
        """Of entries that are trained from scratch, or else of the first entry; baselines share it."""
        return self.readings.first

    @property
    def task(self) -> AnyTask:
        return self.reading.task

    @property
    def score(self) -> Score:
        """By which the entries are ranked."""
        return self.readings.score

    @property
    def data(self) -> Json:
        return self.readings.data

    def protocol(self) -> Json:
        plan, train = self.plan, self.entries[0].config.train
        shared = {option: self._value(option) for option in find_config("tasks", plan.task).shared}
        texts = self.readings.shape.tokenizer is not NoTokenizer
        return {
            "task": plan.task,
            "metric": self.score.name,
            "higher_is_better": self.score.higher_is_better,
            "tokenizers": len(self.readings.hashes),
            "shown": [score.name for score in self.task.scores if score.compared],
            "titles": {
                "task": list(self.task.title),
                "scores": {score.name: score.to_json() for score in self.task.scores},
                "baselines": {name: list(title) for name, title in self.task.baseline_titles.items()},
                "protocol": [list(phrase) for phrase in self.task.protocol_phrases],
            },
            "latency_unit": latency_unit(self.task),
            "tokens": "tokens" if texts else "time steps",
            "pretrains": texts and self.task.encodes,
            "data": self.data,
            "size": {"target": self.target, "count": plan.count},
            "budget": plan.budget.model_dump(),
            "epoch_tokens": self.reading.epoch_tokens,
            "trials": plan.trials,
            "trial_share": plan.trial_share,
            "space": search.space(plan.tune_depth) if plan.trials else {},
            "seeds": [plan.seed + n for n in range(1, plan.seeds + 1)],
            "threads": plan.threads,
            "clock": self._clock(),
            "device": choose_device(train.device).type,
            "shared": shared,
            "fit": self._commands(),
        }

    def _clock(self) -> str:
        """What seconds of training are: CPU time, or elapsed time."""
        sized = self.entries[0]
        if choose_device(sized.config.train.device).type != "cpu":
            return "wall"
        return sized.config.train.clock if "train.clock" in sized.pinned else "cpu"

    def _commands(self) -> dict[str, str]:
        """The command that fits a naive baseline as a model, for those that are one with other options."""
        plan = self.plan
        given = [word for option in plan.overrides for word in ("-o", option) if not option.startswith("model.")]
        fit = ["seqloom", "fit", "--task", plan.task, "--data", plan.data["train"], *given]
        return {
            name: shlex.join([*fit, "--model", sized.entry.model, *_options(options)])
            for sized in self.baselines
            for name, options in sized.model.replaces.items()
        }

    def _value(self, path: str) -> Any:
        section, _, option = path.partition(".")
        part: Any = getattr(self.entries[0].config, section)
        return part[option] if isinstance(part, dict) else getattr(part, option)

    @property
    def _plain(self) -> Plan:
        """The plan for models the user did not name: without overrides of model options, and from scratch."""
        plain = tuple(o for o in self.plan.overrides if not o.startswith(("model.", "lora.", "train.start")))
        return self.plan.model_copy(update={"overrides": plain})

    def _size_for_the_data(self, entries: list[Entry]) -> int:
        """The size of the largest entry, each at the size that `fit` would choose for it."""
        fitted = [self._at_own_size(entry, self._config(entry, at_own_size=True)) for entry in entries]
        scratch = [sized for sized in fitted if not sized.started] or fitted
        return max(sized.parameters[self.column] for sized in scratch)

    def _config(self, entry: Entry, plan: Plan | None = None, at_own_size: bool = False) -> RunConfig:
        config = entry.config(plan or self.plan, at_own_size=at_own_size)
        data = dict(config.data)
        if data["test"] is None and not data["test_fraction"]:
            data["test_fraction"] = _TEST_SHARE
        config = config.model_copy(update={"data": _absolute(data) if self.absolute else data})
        return started.with_absolute_start(config) if self.absolute else config

    def _at_own_size(self, entry: Entry, config: RunConfig) -> Sized:
        """The entry at its own size, set up for the common sequence length; rejected if the task cannot use it."""
        task = task_config(config)
        model, pinned = model_config(config), entry.pinned(self.plan)
        fixed = {name: getattr(model, name) for name in type(model).model_fields if f"model.{name}" in pinned}
        if not config.train.start:  # else it is as long as the run that it starts from
            model = model.reading(task.tokens_per_row).model_copy(update=fixed)
        sized = Sized(entry, config, model, self.readings.of(config), pinned)
        try:
            sized.task.check_model(sized.blueprint)
        except UserError as error:
            if config.train.start:  # other models are no way out for somebody who wants to use these weights
                raise UserError(f"{entry.name}: {error}") from None
            usable = ", ".join(name for name in names("models") if self._accepted(name))
            raise UserError(f"{entry.name}: {error}; usable models: {usable}") from None
        if config.train.start:
            check_base(config.train.start, sized.blueprint)
        return sized

    def _accepted(self, name: str) -> bool:
        try:
            blueprint(Entry(name, name).config(self._plain), self.task)
        except UserError:
            return False
        return True

    def epoch_of(self, config: RunConfig) -> int:
        """Tokens in one pass over the training set of these settings."""
        material = Material(config)
        return self.task.epoch_tokens(material.shape.prepare(material.parts["train"], self.reading.vocabulary))

    def smaller(self, sized: Sized, target: int) -> Sized:
        """The entry as it was tuned, with fewer parameters."""
        own = self._own[sized.entry.name].model
        matched = {*own.knobs, "tie"}  # what the common size was reached with
        kept = {name: value for name, value in sized.model.model_dump().items() if name not in matched}
        return self._at_size(sized.with_model(changed(own, **kept)), target)

    def _at_size(self, sized: Sized, target: int | None = None) -> Sized:
        """`target`: another size than the common one."""

        def count(model: ModelConfig) -> int:
            return sizes(sized.with_model(model).blueprint)[self.column]

        target, matched = target or self.target, sized
        if not sized.started:
            untie = "model.tie" not in sized.pinned
            matched = sized.with_model(match_size(sized.model, target, count, sized.entry.name, untie))
        try:
            task = task_config(matched.config)
            check_memory(
                matched.blueprint,
                matched.config.train,
                task,
                sized.task,
                matched.model,
                way_out=_WAY_OUT,
            )
        except RunError as error:
            raise RunError(f"{sized.entry.name}: {error}") from None
        return matched

    def depths(self, sized: Sized) -> dict[int, Sized]:
        """The entry with half, its own and twice its number of layers, as far as these reach the common size; empty
        unless the plan asks for it and the depth is free and matters."""
        name, own = sized.entry.name, getattr(sized.model, "depth", None)
        if not self.plan.tune_depth or own is None or "model.depth" in sized.pinned or sized.started:
            return {}
        found = {own: sized}
        for depth in {max(1, round(own * factor)) for factor in search.DEPTHS} - {own}:
            try:
                other = self._at_size(self._own[name].with_model(changed(self._own[name].model, depth=depth)))
            except (UserError, RunError):
                continue
            if changed(other.model, depth=own) != sized.model:
                found[depth] = other
        return dict(sorted(found.items()))

    def _say_choices(self, entry: Entry, progress: Reporter) -> None:
        """Once for all entries; what suits each architecture is in its recorded settings."""
        request = entry.request(self.plan, progress.say)
        common = [c for c in entry.choices(request) if not c.path.startswith("model.") and c.path not in OWN]
        for line in told(common):
            progress.say(line)

    def _allot(self, jobs: int, known: float | None, progress: Reporter) -> float:
        """Seconds per run; the plan from here on is that of a budget in seconds."""
        if known is None:
            found = allot(self.plan, self.entries, self.baselines, jobs)
            trained = [sized for sized in self.entries if sized.trained]
            known, runs = found.seconds, len(trained) * (self.plan.trials + self.plan.seeds)
            models = ", ".join(sized.entry.name for sized in trained)
            progress.say(
                f"{models}: {runs} runs of up to {known:.0f} s, about {told_time(found.total)} in all on this machine "
                "if nothing else runs on it (--budget minutes=N to change)"
            )
        self.plan = self.plan.model_copy(update={"budget": per_run(known)})
        return known

    def _in_tokens(self, jobs: int, known: float | None, progress: Reporter) -> float:
        """Tokens per run, or bytes for different tokenizers, in place of a time: only these have exact rungs."""
        unit: Literal["tokens", "bytes"] = "bytes" if len(self.readings.hashes) > 1 else "tokens"
        if known is None:
            if self.plan.budget.kind == "minutes":
                self._allot(jobs, None, progress)
            seconds = self.plan.budget.amount
            known, slowest = within(seconds, self.entries, self.plan.threads, unit)
            progress.say(
                f"ladder: {known:,} {unit} per run, about what {slowest.entry.name} trains on in {seconds:.0f} s, and "
                f"1/8, 1/4 and 1/2 of that (--budget {unit}=N to change)"
            )
        self.plan = self.plan.model_copy(update={"budget": Budget(kind=unit, amount=known)})
        return known

    def _closed_form(self, named: list[Sized]) -> list[Sized]:
        """Every closed-form model that the task accepts, named by the user or not: they cost next to nothing."""
        known = {sized.entry.model for sized in named}
        others = [Entry(name, name) for name in names("models") if name not in known and self._accepted(name)]
        sized = [self._at_own_size(entry, self._config(entry, self._plain)) for entry in others]
        return named + [each for each in sized if each.counts]


def _across_tokenizers(plan: Plan, entries: list[Entry]) -> Plan:
    """With the settings that make scores of different tokenizers comparable, if there are any; the user's stand."""
    hashes = {own.hash if (own := started.tokenizer(entry.config(plan))) else "" for entry in entries}
    across = as_overrides(find_config("tasks", plan.task).across) if len(hashes) > 1 else []
    return plan.model_copy(update={"overrides": (*across, *plan.overrides)}) if across else plan


def _options(model: Json) -> list[str]:
    return [word for name, value in model.items() for word in ("-o", f"model.{name}={value}")]


def _absolute(data: Json) -> Json:
    """Absolute paths, valid in any working directory."""
    specs = {part: data[part] for part in ("train", "valid", "test")}
    paths = {part: _path(spec) for part, spec in specs.items() if spec and not spec.startswith("sample:")}
    return data | paths


def _path(spec: str) -> str:
    """A pair of files, `train.en,train.de`, is two paths; but a comma may also be part of a file name."""
    names = [spec] if os.path.exists(spec) else spec.split(",")
    return ",".join(os.path.abspath(name.strip()) for name in names)
