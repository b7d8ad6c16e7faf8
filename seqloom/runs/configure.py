"""The complete settings of a run: recipe, flags and overrides on top of the defaults of task and model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import torch

from seqloom.core.config import Strict, merge, parse_overrides, read_toml, validate
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.shapes import find_shape, shape_names
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config, section
from seqloom.runs.settings import RunConfig, Say, move_options
from seqloom.train.settings import TrainConfig

BUDGETS = ("steps", "tokens", "seconds")
DEFAULT_TOKENS = 1_536_000  # takes minutes on two cores, and is enough to tell architectures apart


def silent(text: str) -> None:
    """For callers that have nobody to tell."""


def configure(
    recipe: Path | None, flags: Mapping[str, object], overrides: Iterable[str] = (), say: Say = silent
) -> RunConfig:
    """The user's settings (recipe, flags, -o; the later wins), on top of the defaults of the chosen task and model."""
    given = move_options(merge(read_toml(recipe) if recipe else {}, flags, parse_overrides(overrides)), say)
    if start := given.get("train", {}).get("start"):
        given = _start_from(start, given)
    chosen = {
        "task": given.setdefault("task", {}).pop("name", "language_model"),
        "model": given.setdefault("model", {}).pop("name", "lstm"),
    }
    task, model = find_config("tasks", chosen["task"]), find_config("models", chosen["model"])
    shape = find_shape(task.shape(given["task"]))
    kinds: dict[str, type[Strict]] = {
        "task": task, "model": model, "data": shape.options, "tokenizer": shape.tokenizer, "train": TrainConfig
    }  # fmt: skip
    defaults = {path: value for path, value in model.defaults.items() if _is_known(path, kinds)} | task.defaults
    if not any(given.get("train", {}).get(budget) for budget in BUDGETS):
        defaults["train.tokens"] = DEFAULT_TOKENS
    for name in ("data", "tokenizer"):
        given[name] = _drop_foreign(name, given.get(name, {}), kinds[name], chosen["task"], say)
    sections = validate(kinds, merge(defaults, given))
    if task.whole and "context" not in given["model"]:
        sections["model"] = sections["model"].reading(sections["task"].tokens_per_row)
    plain = {name: options.model_dump() for name, options in sections.items() if name != "train"}
    named = {name: ({"name": chosen[name]} if name in chosen else {}) | options for name, options in plain.items()}
    return RunConfig(**named, train=sections["train"])


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
    before = RunFolder(Path(start)).config()
    model, named = dict(before.model), given.get("model", {}).get("name")
    if named and named != model["name"]:
        raise UserError(f"--from {start}: its model is {model['name']}, not {named}; leave --model out")
    task = find_config("tasks", given.get("task", {}).get("name", "language_model"))
    known = find_shape(task.shape(given.get("task", {}))).tokenizer.model_fields
    tokenizer = {option: value for option, value in before.tokenizer.items() if option in known}
    limit: int | None = None
    with torch.device("meta"), suppress(NotImplementedError):  # count-based models have no layers to build
        limit = section("models", model).build().limit
    shorter: Json = {}
    for option in ({"longest", "window"} & task.model_fields.keys()) if limit else ():
        shorter[option] = min(limit or 0, task.model_fields[option].default)  # no longer than its context in that run
    return merge({"model": model, "task": shorter, "tokenizer": tokenizer}, given)


def _is_known(path: str, kinds: Mapping[str, type[Strict]]) -> bool:
    """A model's defaults may include options that this task does not have."""
    name, _, option = path.partition(".")
    return option in kinds[name].model_fields
