"""The complete settings of a run: recipe, flags and overrides on top of the defaults of task and model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

import torch

from seqloom.core.config import Strict, merge, parse_overrides, validate
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.core.toml import read_toml
from seqloom.data.shapes import find_shape, shape_names
from seqloom.data.shapes.columns import Columns, column_options
from seqloom.data.shapes.shape import AnyShape
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config, section
from seqloom.runs.settings import RunConfig, Say, move_options
from seqloom.runs.source import is_foreign, run_folder
from seqloom.train.settings import LoraConfig, TrainConfig

BUDGETS = ("steps", "tokens", "epochs", "seconds")
_THREADS = 32  # that a machine with few cores may have, for the same bits as a larger one
DEFAULT_TOKENS = 1_536_000  # takes minutes on two cores, and is enough to tell architectures apart


def silent(text: str) -> None:
    """For callers that have nobody to tell."""


@dataclass(frozen=True)
class Request:
    """What the user says, and the classes of the options it may set."""

    given: dict[str, Json]  # by section, without the names of task and model
    names: dict[str, str]  # of the task and the model
    kinds: dict[str, type[Strict]]  # by section

    @property
    def task(self) -> type[TaskConfig]:
        return cast("type[TaskConfig]", self.kinds["task"])

    @property
    def model(self) -> type[ModelConfig]:
        return cast("type[ModelConfig]", self.kinds["model"])

    @property
    def shape(self) -> AnyShape:
        return find_shape(self.task.shape(self.given["task"]))

    @property
    def settings(self) -> Json:
        """The user's settings by path: {"train.steps": 20}."""
        return {f"{name}.{option}": value for name, section in self.given.items() for option, value in section.items()}

    @property
    def defaults(self) -> Json:
        """Of the model, by path; it may have some for options that this task does not have."""
        return {path: value for path, value in self.model.defaults.items() if _is_known(path, self.kinds)}

    def settle(self, chosen: Mapping[str, object] = MappingProxyType({})) -> RunConfig:
        """Complete settings; `chosen`: by path, above the defaults of task and model and below the user's."""
        defaults, above = self.defaults | self.task.defaults, {**chosen, **self.settings}
        if not any(above.get(f"train.{budget}") for budget in BUDGETS):
            defaults["train.tokens"] = DEFAULT_TOKENS
        chosen = {path: value for path, value in chosen.items() if _is_known(path, self.kinds)}
        sections = validate(self.kinds, merge(defaults, chosen, self.given))
        if self.task.whole and "model.context" not in above:
            sections["model"] = sections["model"].reading(sections["task"].tokens_per_row)
        typed = {name: sections.pop(name) for name in ("train", "lora")}
        plain = {name: options.model_dump() for name, options in sections.items()}
        named = {n: ({"name": self.names[n]} if n in self.names else {}) | options for n, options in plain.items()}
        return RunConfig(**named, **typed)


def configure(
    recipe: Path | None, flags: Mapping[str, object], overrides: Iterable[str] = (), say: Say = silent
) -> RunConfig:
    """The user's settings on top of the defaults of the chosen task and model, without a look at the data."""
    return read_request(recipe, flags, overrides, say).settle()


def read_request(
    recipe: Path | None,
    flags: Mapping[str, object],
    overrides: Iterable[str] = (),
    say: Say = silent,
    columns: Columns = MappingProxyType({}),
) -> Request:
    """The user's settings: recipe, flags, columns, -o; the later wins. Mistakes are reported before any data is read.

    `columns`: names by role.
    """
    typed = parse_overrides(overrides)
    given = move_options(merge(read_toml(recipe) if recipe else {}, flags, typed), say)
    if (start := given.get("train", {}).get("start")) and isinstance(start, str):
        given = _start_from(start, given)
    chosen = {
        "task": given.setdefault("task", {}).pop("name", "language_model"),
        "model": given.setdefault("model", {}).pop("name", "lstm"),
    }
    task, model = find_config("tasks", chosen["task"]), find_config("models", chosen["model"])
    given["task"] = _read_as(task, given) | given["task"]
    shape = find_shape(task.shape(given["task"]))
    own = {f"data.{option}": name for option, name in column_options(shape, columns).items()}
    given = merge(given, {path: name for path, name in own.items() if path not in typed})
    kinds: dict[str, type[Strict]] = {
        "task": task, "model": model, "data": shape.options, "tokenizer": shape.tokenizer, "train": TrainConfig,
        "lora": LoraConfig,
    }  # fmt: skip
    for name in ("data", "tokenizer"):
        given[name] = _drop_foreign(name, given.get(name, {}), kinds[name], chosen["task"], say)
    request = Request(given, chosen, kinds)
    config = request.settle()
    if config.lora.rank and not config.train.start:
        raise UserError(
            f"lora.rank={config.lora.rank}: adapters need trained weights to start from; set --from RUN (train.start)"
        )
    most = max(_THREADS, 4 * (os.cpu_count() or 1))
    if config.train.threads > most:
        raise UserError(f"train.threads={config.train.threads}: for {os.cpu_count()} cores, at most {most} make sense")
    return request


def _read_as(task: type[TaskConfig], given: Mapping[str, Json]) -> Json:
    """The task's options for data that is certainly not of its default shape."""
    train = given.get("data", {}).get("train")
    others = [name for name in task.shapes[1:] if isinstance(train, str) and find_shape(name).holds(train)]
    return task.reading(others[0]) if others else {}


def _drop_foreign(section: str, given: Json, own: type[Strict], task: str, say: Say) -> Json:
    """Drop options that belong to another shape of data, with a warning, so that older recipes still work."""
    shapes = [find_shape(name) for name in shape_names()]
    others = {name for s in shapes for name in (s.options if section == "data" else s.tokenizer).model_fields}
    foreign = [name for name in given if name in others and name not in own.model_fields]
    if foreign:
        say(f"{', '.join(f'{section}.{name}' for name in foreign)}: not used by {task}; leave it out")
    return {name: value for name, value in given.items() if name not in foreign}


def _start_from(start: str, given: dict[str, Json]) -> dict[str, Json]:
    """The model and tokenizer settings of another run, overridden by the user's settings."""
    before = RunFolder(run_folder(start)).config()
    model, named = dict(before.model), given.get("model", {}).get("name")
    if named and named != model["name"]:
        raise UserError(f"--from {start}: its model is {model['name']}, not {named}; leave --model out")
    task = find_config("tasks", given.get("task", {}).get("name", "language_model"))
    known = find_shape(task.shape(_read_as(task, given) | given.get("task", {}))).tokenizer.model_fields
    tokenizer = {option: value for option, value in before.tokenizer.items() if option in known}
    limit: int | None = None
    with torch.device("meta"), suppress(NotImplementedError):  # count-based models have no layers to build
        limit = section("models", model).build().limit
    if is_foreign(start):
        _refuse_other_options(start, model, given.get("model", {}))
    shorter: Json = {}
    for option in ({"longest", "window"} & task.model_fields.keys()) if limit else ():
        default = task.model_fields[option].default
        if not is_foreign(start) or default > (limit or 0):
            shorter[option] = min(limit or 0, default)  # no longer than its context in that run
    return merge({"model": model, "task": shorter, "tokenizer": tokenizer}, given)


def _refuse_other_options(start: str, model: Json, given: Json) -> None:
    """The layout of weights that another tool trained is fixed; dropout is not part of it."""
    own = {option: value for option, value in given.items() if option in model.keys() - {"name", "dropout"}}
    other = [option for option, value in own.items() if model[option] != value]
    if other:
        mine, theirs = given[other[0]], model[other[0]]
        raise UserError(f"model.{other[0]}={mine}: the weights of {start} have {theirs}; leave it out")


def _is_known(path: str, kinds: Mapping[str, type[Strict]]) -> bool:
    """A model's defaults may include options that this task does not have."""
    name, _, option = path.partition(".")
    return option in kinds[name].model_fields
