"""Entries of a comparison: models with their options, at the size they are compared at."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seqloom.core.choice import Choice
from seqloom.core.config import merge, parse_overrides
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask
from seqloom.lab import started
from seqloom.lab.protocols import flops
from seqloom.lab.reading import Reading
from seqloom.lab.rules import Budget, Rules
from seqloom.runs.build import blueprint, count_parameters
from seqloom.runs.choosing import choose
from seqloom.runs.configure import BUDGETS, Request, read_request, silent
from seqloom.runs.methods import descends
from seqloom.runs.registry import find_config, names, task_config
from seqloom.runs.settings import RunConfig, Say

_LEAST_STEPS, _LEAST_SECONDS = 10, 1.0  # a run is validated ten times
_BUDGET = {"train.epochs", "train.patience", "train.minutes"}


@dataclass(frozen=True)
class Entry:
    """A named model with its own options."""

    name: str
    model: str
    options: tuple[str, ...] = ()  # overrides for this entry only

    @classmethod
    def parse(cls, text: str) -> Entry:
        """`lstm`, `gpt:preset=gpt2`, `old=gpt:preset=gpt2:train.optimizer=adamw`, `a=lora:weights:minilm:rank=4`."""
        head, *rest = text.strip().split(":")
        name, named, first = head.rpartition("=")
        if started.starts([first, *rest]):
            written, model, options = started.read([first, *rest])
            _check_rank(written, first, options)
            return cls(name if named else re.sub(r"[^\w .=+-]+", "-", written), model, options)
        find_config("models", first)
        options = tuple(o if "." in o.partition("=")[0] else f"model.{o}" for o in rest)
        parse_overrides(options)
        return cls(name if named else " ".join([first, *rest]), first, options)

    @property
    def folder(self) -> str:
        return re.sub(r"[^\w.-]+", "-", self.name)

    def config(self, rules: Rules, say: Say = silent, at_own_size: bool = False) -> RunConfig:
        """Complete settings: defaults of the model, then those chosen from the data, then those shared by all entries,
        then the user's. `at_own_size`: also its size is chosen from the data, instead of matched to the others."""
        request = self.request(rules, say)
        return request.settle({choice.path: choice.value for choice in self.choices(request, at_own_size)})

    def settings(self, rules: Rules, data: Json) -> RunConfig:
        """What `fit` would choose for this entry on other data, such as less of it: also its budget, not its size."""
        request = self.request(rules.model_copy(update={"data": rules.data | data}))
        sizes = {f"model.{knob}" for knob in request.model.knobs}
        return request.settle({choice.path: choice.value for choice in choose(request) if choice.path not in sizes})

    def choices(self, request: Request, at_own_size: bool = False) -> list[Choice]:
        """Chosen from the data, but for what the comparison sets: the budget, and the options that reach a size."""
        matched = set() if at_own_size else {f"model.{knob}" for knob in request.model.knobs}
        return [choice for choice in choose(request) if choice.path not in matched | _BUDGET]

    def request(self, rules: Rules, say: Say = silent) -> Request:
        flags = {"task.name": rules.task, "model.name": self.model}
        flags |= {f"data.{k}": v for k, v in rules.data.items()}
        shared = find_config("tasks", rules.task).shared
        return read_request(None, shared | flags, [*rules.overrides, *self.options], say)

    def pinned(self, rules: Rules) -> set[str]:
        """Options set by the user, which the search must not change."""
        chosen = merge(parse_overrides([*rules.overrides, *self.options]))
        return {f"{section}.{option}" for section, options in chosen.items() for option in options}


def parse_entries(models: Iterable[str]) -> list[Entry]:
    entries = [Entry.parse(text) for text in models if text.strip()]
    if not entries:
        raise UserError("--models: name at least one model, for example --models rnn,lstm,gpt")
    for entry in entries:
        if not re.fullmatch(r"\w[\w .=+-]{0,199}", entry.name) or entry.name in set(names("models")) - {entry.model}:
            raise UserError(
                f"--models: {entry.name!r} is not a valid name for {entry.model}; use letters and digits, and not the "
                "name of another model"
            )
    for seen in ([entry.name for entry in entries], [entry.folder.casefold() for entry in entries]):
        if double := next((name for name in seen if seen.count(name) > 1), None):
            raise UserError(f"--models: {double!r} is listed twice; use names, for example a=lstm,b=lstm:depth=2")
    return entries


def check_options(entries: Sequence[Entry], overrides: Iterable[str], task: str) -> None:
    """Reject options that would make the comparison unfair or that it sets itself."""
    own = {f"task.{option}" for option in find_config("tasks", task).own}
    for text in overrides:
        (path,) = parse_overrides([text])
        if path in _OURS:
            raise UserError(f"-o {path}: set by the comparison; use {_OURS[path]}")
        if path.startswith("model."):
            _check_all_have(text, entries)
        if any(path == _size_knob(entry) for entry in entries):
            raise UserError(f"-o {path}: used to match the sizes of the models; use --params")
    for entry in entries:
        given = parse_overrides(entry.options)
        for path in given:
            if not path.startswith(("model.", "lora.")) and path not in OWN | own:
                raise UserError(f"{entry.name}: {path} must be the same for all models; set it with -o")
            if path == _size_knob(entry) and "train.start" not in given:  # weights have the size that they have
                raise UserError(f"{entry.name}: {path} is used to match the size of the other models; use --params")


def _check_rank(name: str, way: str, options: Sequence[str]) -> None:
    """Reject `lora` of rank 0, which would be full fine-tuning by another name, and the reverse."""
    rank = parse_overrides(options).get("lora.rank")
    if way == "lora" and rank == 0:
        raise UserError(f"{name}: rank 0 means no adapters; give a rank above 0, or write full: instead of lora:")
    if way in started.WAYS and way != "lora" and rank:
        raise UserError(f"{name}: {way} has no adapters; leave out lora.rank, or write lora: instead of {way}:")


def _size_knob(entry: Entry) -> str:
    return f"model.{find_config('models', entry.model).knobs[0]}"


def _check_all_have(override: str, entries: Sequence[Entry]) -> None:
    """`-o` applies to all models; an option that only some have belongs in --models. (Unknown ones fail elsewhere.)"""
    setting = override.removeprefix("model.")
    option = setting.partition("=")[0].strip()
    have = {e.model: option in find_config("models", e.model).model_fields for e in entries}
    if any(have.values()) and not all(have.values()):
        lack = ", ".join(model for model, has in have.items() if not has)
        way = " and ".join(f"{model}:{setting}" for model, has in have.items() if has)
        raise UserError(f"-o {override}: not an option of {lack}; -o applies to all models, so write {way} in --models")


_OURS = dict.fromkeys(("train.steps", "train.tokens", "train.epochs", "train.seconds"), "--budget") | {
    "train.seed": "--seed",
    "train.threads": "--jobs",
}


_RECIPE = [  # training options that an entry may set for itself
    "optimizer",
    "rate",
    "matrix_rate",
    "weight_decay",
    "momentum",
    "beta1",
    "beta2",
    "schedule",
    "decay",
    "warmup",
    "floor",
    "clip",
    "clip_by",
]


OWN = {f"train.{option}" for option in (*_RECIPE, "start", "method", "freeze", "stage_decay")}


class Sized:
    """An entry at its matched size."""

    def __init__(self, entry: Entry, config: RunConfig, model: ModelConfig, reading: Reading, pinned: set[str]) -> None:
        self.entry, self.model, self.reading, self.pinned = entry, model, reading, pinned
        self.config = config.model_copy(update={"model": {"name": entry.model} | model.model_dump()})

    def with_model(self, model: ModelConfig) -> Sized:
        return Sized(self.entry, self.config, model, self.reading, self.pinned)

    def with_config(self, config: RunConfig) -> Sized:
        return Sized(self.entry, config, self.model, self.reading, self.pinned)

    @property
    def task(self) -> AnyTask:
        return self.reading.task

    @cached_property
    def blueprint(self) -> SequenceModel:
        return blueprint(self.config, self.task)

    @property
    def trained(self) -> bool:
        """By gradient descent, so that there is a budget, and something to tune."""
        return self.blueprint.descends and descends(self.config)

    @property
    def counts(self) -> bool:
        """Fitted by counting or in closed form: nothing to match, tune or repeat over seeds."""
        return not self.trained and not self.drawn

    @property
    def drawn(self) -> bool:
        """Without training, but with examples that are drawn anew for every seed."""
        return self.config.train.method == "prompt"

    @property
    def fixed(self) -> set[str]:
        """Options that the search does not vary. Pretrained weights keep the optimizer that is chosen for fine-tuning:
        the steps of Muon have the size that suits random weights."""
        return self.pinned | ({"train.optimizer"} if started.pretrained(self.config) else set())

    @property
    def started(self) -> bool:
        """From the weights of another model, which set its size."""
        return self.config.train.start is not None

    @cached_property
    def parameters(self) -> tuple[int, int]:
        """Total, and in the backbone."""
        return sizes(self.blueprint)

    @cached_property
    def flops_per_token(self) -> float:
        return flops(self.task, self.blueprint, self.reading.length)

    def budget(self, budget: Budget, share: float = 1.0) -> Json:
        """The `train` options that set the budget."""
        free: Json = dict.fromkeys(BUDGETS)
        if budget.kind == "seconds":
            return free | {"seconds": max(0.1, budget.amount * share)}
        return free | {"tokens": max(1, round(self._tokens(budget) * share))}

    def _tokens(self, budget: Budget) -> float:
        if budget.kind == "bytes":
            return budget.amount / self.reading.bytes_per_token
        return budget.amount if budget.kind == "tokens" else budget.amount / (3 * self.flops_per_token)

    def check_budget(self, budget: Budget, share: float) -> None:
        """The shortest run must be long enough to be evaluated."""
        if not self.trained:
            return
        if budget.kind == "seconds":
            if budget.amount * share < _LEAST_SECONDS:
                raise UserError(
                    f"--budget seconds={budget.amount:g} leaves {budget.amount * share:g} s for a trial, too little "
                    f"for one evaluation; use at least seconds={_LEAST_SECONDS / share:g}"
                )
            return
        step = task_config(self.config).tokens_per_step(self.config.train.batch)
        tokens, least = self.budget(budget, share)["tokens"], _LEAST_STEPS * step
        if tokens < least:
            need = math.ceil(budget.amount * least / tokens)
            raise UserError(
                f"--budget {budget.kind}={budget.amount:g} gives {self.entry.name} {tokens:,} tokens per run, too few "
                f"for one evaluation ({_LEAST_STEPS} steps of {step:,}); use at least {budget.kind}={need}"
            )


def changed(section: Any, **changes: Any) -> Any:
    """A validated copy of a configuration section with other values."""
    return type(section).model_validate(section.model_dump() | changes)


def sizes(model: SequenceModel) -> tuple[int, int]:
    """Number of parameters in total, and in the backbone."""
    inside = sum(p.numel() for name, p in model.named_parameters() if name.startswith("backbone."))
    return count_parameters(model), inside
