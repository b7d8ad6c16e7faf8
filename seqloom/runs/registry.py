"""Where names become objects: models and tasks are open sets, the file name is the name you type."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import torch
from pydantic import ValidationError

from seqloom.core.errors import UserError, unknown
from seqloom.core.network import ModelConfig, SequenceModel
from seqloom.core.task import Task, TaskConfig
from seqloom.runs.settings import RunConfig


def names(kind: str) -> list[str]:
    """The names in an open set: `models` or `tasks`. Imports none of them."""
    folder = Path(__file__).parent.parent / kind
    return sorted(m.name for m in iter_modules([str(folder)]) if not m.name.startswith("_"))


def find_config(kind: str, name: str) -> Any:
    if not isinstance(name, str) or name not in names(kind):
        raise unknown(kind.removesuffix("s"), name, names(kind))
    return import_module(f"seqloom.{kind}.{name}").Config


def task_config(config: RunConfig) -> TaskConfig:
    return section("tasks", config.task)


def model_config(config: RunConfig) -> ModelConfig:
    return section("models", config.model)


def section(kind: str, section: Mapping[str, Any]) -> Any:
    options = dict(section)
    name = options.pop("name")
    try:
        return find_config(kind, name).model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(dict.fromkeys(str(mistake["loc"][0]) for mistake in error.errors() if mistake["loc"]))
        raise UserError(f"a run of {name} with options that it does not have: {wrong}; was run.json edited?") from None


def check_reading(task: TaskConfig, model: SequenceModel) -> None:
    """A model with a limit reads windows that fit into it, and carries no state that could be cut."""
    truncation = getattr(task, "truncation", "regular")
    if model.limit is None:
        return
    for option in ("length", "context"):
        if (wanted := getattr(task, option, 0)) > model.limit:
            raise UserError(
                f"task.{option}={wanted} is longer than the model's context {model.limit}; set model.context={wanted}"
            )
    if truncation != "regular":
        raise UserError(f"task.truncation={truncation} cuts a carried state; this model reads windows and carries none")


def count_parameters(model: SequenceModel) -> int:
    return sum(p.numel() for p in model.parameters())


def blueprint(config: RunConfig, task: Task) -> SequenceModel:
    """The model without memory for its weights: to count them before they are allocated."""
    with torch.device("meta"):
        return model_config(config).assemble(task)
