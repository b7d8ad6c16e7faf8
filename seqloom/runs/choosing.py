"""What the user does not say is chosen from the data, by the rules of its shape, the task and the model.

The columns come first, then the tokenizer, the task's options and the training settings, then the size of the model
and the training settings that suit it better.
Every choice is a setting that the user could have given; it is printed with its reason, and recorded with the run, so
that running the same command again chooses the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from pydantic import ValidationError

from seqloom.core.choice import Choice, Start
from seqloom.core.config import validate
from seqloom.core.rows import Json
from seqloom.data.files import declare
from seqloom.data.options import DataOptions
from seqloom.data.shapes import find_shape
from seqloom.runs.configure import Request
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import section
from seqloom.runs.source import is_foreign, run_folder

EPOCHS, PATIENCE = 10.0, 4  # for tasks without a rule
_COUNTED = ("train.steps", "train.tokens", "train.epochs")  # budgets that leave no epochs to choose


def choose(request: Request, columns: bool = False) -> list[Choice]:
    """Settings for what the user leaves open, in the order of the rules; `columns`: only which column is what."""
    found = _Choices(request)
    shape, data = request.shape, request.given["data"]
    specs = {part: str(data[part]) for part in ("train", "valid", "test") if data.get(part) is not None}  # -o: a number
    for spec in specs.values():
        declare(spec, data.get("encoding"))
    found.add(shape.roles(specs["train"], data))
    if columns:
        return found.choices
    options = validate({"data": shape.options}, {"data": found.section("data")})["data"]
    train = _training_set(request.task.shape(request.given["task"]), options, _changed(options.train))
    found.add(shape.choose(train, found.settings))
    found.add(request.task.choose(train, found.settings))
    found.add([Choice("train.epochs", EPOCHS, ""), Choice("train.patience", PATIENCE, "")])
    if demand := request.task.demand(train, found.settings):
        given = demand._replace(width=request.settings.get("model.width", 0))
        found.add(request.model.suit(given), replace=True)
    if start := _start(request):
        found.add(request.task.tune(start, train, found.settings), replace=True)
    return found.choices


def _start(request: Request) -> Start | None:
    """The pretrained weights that the run starts from, if another tool trained them."""
    name = request.settings.get("train.start")
    if name is None or not is_foreign(name):
        return None
    folder = RunFolder(run_folder(name))
    with torch.device("meta"):
        kind = section("models", folder.config().model).build().kind
    adapted = bool(request.settings.get("lora.rank"))
    return Start(folder.record()["parameters"], kind == "causal", adapted)


@lru_cache(maxsize=2)
def _training_set(shape: str, options: DataOptions, changed: float) -> Any:
    """Kept, because the entries of a comparison choose from the same data one after the other."""
    return find_shape(shape).open_parts(options)["train"]


def _changed(spec: str) -> float:
    """When the data was last changed: a file, or two parallel ones; 0: a sample."""
    files = [spec] if os.path.exists(spec) else spec.split(",")
    return max((os.stat(file).st_mtime for file in files if os.path.exists(file)), default=0.0)


class _Choices:
    """Choices so far. A setting of the user or of the architecture is never overridden, and what the user's settings
    exclude is not chosen."""

    def __init__(self, request: Request) -> None:
        own = {path: value for path, value in request.defaults.items() if path.startswith("task.")}
        self.request, self.settings, self.choices = request, own | request.settings, list[Choice]()
        self.counted = any(self.settings.get(budget) for budget in _COUNTED)

    def add(self, choices: Iterable[Choice], replace: bool = False) -> None:
        """`replace`: an earlier choice for the same setting gives way; otherwise it stands."""
        for choice in choices:
            earlier = next((c for c in self.choices if c.path == choice.path), None) if replace else None
            if earlier is None and (choice.path in self.settings or (choice.path == "train.epochs" and self.counted)):
                continue
            if self._is_valid(choice):
                self.settings[choice.path] = choice.value
                self.choices = [c for c in self.choices if c is not earlier] + [choice]

    def _is_valid(self, choice: Choice) -> bool:
        name, _, option = choice.path.partition(".")
        kind = self.request.kinds[name]
        try:
            kind.model_validate(self.section(name) | {option: choice.value})
        except ValidationError:
            return False
        return True

    def section(self, name: str) -> Json:
        start = f"{name}."
        return {path.removeprefix(start): v for path, v in self.settings.items() if path.startswith(start)}


def recorded(record: Mapping[str, Json]) -> Json:
    """Settings of an earlier run in this folder that the user did not give then: chosen, or defaults of that version.

    Records from before choices were made do not say what was given: all their settings stand.
    """
    given = record.get("given", {})
    paths = {f"{n}.{option}": value for n, options in record["config"].items() for option, value in options.items()}
    return {path: value for path, value in paths.items() if path not in given and not path.endswith(".name")}


def told(choices: Iterable[Choice], trained: bool = True) -> list[str]:
    """A few lines for the log; `trained`: by gradient descent, so that model and training settings matter."""
    shown = [c for c in choices if c.reason and (trained or not (c.trains or c.path.startswith(("model.", "train."))))]
    lines = []
    for reason, group in groupby(shown, key=lambda choice: choice.reason):
        lines.append(f"  {', '.join(f'{c.path}={_value(c.value)}' for c in group)}: {reason}")
    return ["chosen for you (-o NAME=VALUE to change):", *lines] if lines else []


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
