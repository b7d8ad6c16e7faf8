"""What the user said, as the complete settings of a run: recipe, flags and overrides over what suits task and model."""

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
DEFAULT_TOKENS = 1_536_000  # minutes on two cores, and enough to tell architectures apart


def _silent(text: str) -> None: ...


def configure(
    recipe: Path | None, flags: Mapping[str, object], overrides: Iterable[str] = (), say: Say = _silent
) -> RunConfig:
    """What the user said (the later wins: recipe, flags, -o), over what suits the task and model that were chosen."""
    said = move_options(merge(read_toml(recipe) if recipe else {}, flags, parse_overrides(overrides)), say)
    if start := said.get("train", {}).get("start"):
        said = _beginning_with(start, said)
    chosen = {
        "task": said.setdefault("task", {}).pop("name", "language_model"),
        "model": said.setdefault("model", {}).pop("name", "lstm"),
    }
    task, model = find_config("tasks", chosen["task"]), find_config("models", chosen["model"])
    shape = find_shape(task.shape(said["task"]))
    kinds: dict[str, type[Strict]] = {
        "task": task, "model": model, "data": shape.options, "tokenizer": shape.tokenizer, "train": TrainConfig
    }  # fmt: skip
    suits = {path: value for path, value in model.defaults.items() if _is_known(path, kinds)} | task.defaults
    if not any(said.get("train", {}).get(budget) for budget in BUDGETS):
        suits["train.tokens"] = DEFAULT_TOKENS
    for name in ("data", "tokenizer"):
        said[name] = _of_this_shape(name, said.get(name, {}), kinds[name], chosen["task"], say)
    sections = validate(kinds, merge(suits, said))
    if task.whole and "context" not in said["model"]:
        sections["model"] = sections["model"].reading(sections["task"].tokens_per_row)
    plain = {name: options.model_dump() for name, options in sections.items() if name != "train"}
    named = {name: ({"name": chosen[name]} if name in chosen else {}) | options for name, options in plain.items()}
    return RunConfig(**named, train=sections["train"])


def _of_this_shape(section: str, said: Json, own: type[Strict], task: str, say: Say) -> Json:
    """Options of another shape of data have no meaning here; a recipe that names them still works."""
    shapes = [find_shape(name) for name in shape_names()]
    others = {name for s in shapes for name in (s.options if section == "data" else s.tokenizer).model_fields}
    strange = [name for name in said if name in others and name not in own.model_fields]
    if strange:
        say(f"{', '.join(f'{section}.{name}' for name in strange)}: not used by {task}; leave it out")
    return {name: value for name, value in said.items() if name not in strange}


def _beginning_with(start: str, said: dict[str, Json]) -> dict[str, Json]:
    """The model and the tokenizer are those of another run, except for what the user said."""
    before = RunFolder(Path(start)).config()
    model, named = dict(before.model), said.get("model", {}).get("name")
    if named and named != model["name"]:
        raise UserError(f"--from {start}: a run of {model['name']}, not of {named}; leave --model out")
    task = find_config("tasks", said.get("task", {}).get("name", "language_model"))
    cuts = find_shape(task.shape(said.get("task", {}))).tokenizer.model_fields
    tokenizer = {option: value for option, value in before.tokenizer.items() if option in cuts}
    limit: int | None = None
    with torch.device("meta"), suppress(NotImplementedError):  # a model that only counts has no layers to build
        limit = section("models", model).build().limit
    shorter: Json = {}
    for option in ({"longest", "window"} & task.model_fields.keys()) if limit else ():
        shorter[option] = min(limit or 0, task.model_fields[option].default)  # it reads no more than it could there
    return merge({"model": model, "task": shorter, "tokenizer": tokenizer}, said)


def _is_known(path: str, kinds: Mapping[str, type[Strict]]) -> bool:
    """Settings that suit a model may be options that this task does not have."""
    name, _, option = path.partition(".")
    return option in kinds[name].model_fields
