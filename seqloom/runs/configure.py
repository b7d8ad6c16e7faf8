"""What the user said, as the complete configuration of a run: recipe, flags and overrides over what suits the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from seqloom.core.config import merge, parse_overrides, read_toml, validate
from seqloom.core.errors import UserError
from seqloom.core.task import TaskConfig
from seqloom.data.options import DataConfig
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config, section
from seqloom.runs.settings import RunConfig
from seqloom.train.settings import TrainConfig

BUDGETS = ("steps", "tokens", "seconds")


DEFAULT_TOKENS = 1_536_000  # minutes on two cores, and enough to tell architectures apart


def configure(recipe: Path | None, flags: Mapping[str, Any], overrides: Iterable[str] = ()) -> RunConfig:
    """What the user said (the later wins: recipe, flags, -o), over what suits the model she chose."""
    said = merge(read_toml(recipe) if recipe else {}, flags, parse_overrides(overrides))
    if start := said.get("train", {}).get("start"):
        said = _beginning_with(start, said)
    chosen = {
        "task": said.setdefault("task", {}).pop("name", "language_model"),
        "model": said.setdefault("model", {}).pop("name", "lstm"),
    }
    task, model = find_config("tasks", chosen["task"]), find_config("models", chosen["model"])
    suits = {path: value for path, value in model.defaults.items() if _is_known(path, task)} | task.defaults
    if not any(said.get("train", {}).get(budget) for budget in BUDGETS):
        suits["train.tokens"] = DEFAULT_TOKENS
    kinds = {"task": task, "model": model, "data": DataConfig, "train": TrainConfig}
    sections = validate(kinds, merge(suits, said))
    if task.whole and "context" not in said["model"]:
        sections["model"] = sections["model"].reading(sections["task"].tokens_per_row)
    named = {part: {"name": name} | sections[part].model_dump() for part, name in chosen.items()}
    return RunConfig(**named, data=sections["data"], train=sections["train"])


def _beginning_with(start: str, said: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The model and the tokenizer are those of another run, but for what was said."""
    before = RunFolder(Path(start)).config()
    model, named = dict(before.model), said.get("model", {}).get("name")
    if named and named != model["name"]:
        raise UserError(f"--from {start}: a run of {model['name']}, not of {named}; leave --model out")
    kept = ("tokenizer", "vocabulary", "min_count", "split")
    known = find_config("tasks", said.get("task", {}).get("name", "language_model")).model_fields
    task = {option: before.task[option] for option in kept if option in before.task and option in known}
    limit: int | None = None
    with torch.device("meta"), suppress(NotImplementedError):  # one that only counts has no layers to build
        limit = section("models", model).build().limit
    for option in ({"longest", "window"} & known.keys()) if limit else ():
        task[option] = min(limit, known[option].default)  # it reads no more than it could there
    return merge({"model": model, "task": task}, said)


def _is_known(path: str, task: type[TaskConfig]) -> bool:
    """What suits a model may be an option that this task does not have."""
    section, _, option = path.partition(".")
    return section != "task" or option in task.model_fields
