"""Lists of models, tasks, samples, studies and existing runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from seqloom.core.config import options
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs.registry import find_config, names

Rows = list[Json]


def models(name: str | None = None) -> Rows:
    return _summaries("models") if name is None else _options("models", name)


def tasks(name: str | None = None) -> Rows:
    return _summaries("tasks") if name is None else _options("tasks", name)


def samples(name: str | None = None) -> Rows:
    from seqloom.data.samples import SAMPLES

    if name is not None:
        raise UserError(f"{name}: samples have no options; list them all: seqloom list samples")
    return [{"sample": f"sample:{key}", "kind": found.kind, "what": found.what} for key, found in SAMPLES.items()]


def studies(name: str | None = None) -> Rows:
    if name is not None:
        raise UserError(f"{name}: studies have no options; list them all: seqloom list studies")
    return _summaries("studies")


def runs(name: str | None = None) -> Rows:
    from seqloom.runs.past import listed

    if name is not None and not os.path.isdir(name):
        raise UserError(f"{name or 'runs'}: no such folder")
    return listed(Path("runs" if name is None else name))


def kinds() -> Rows:
    """What can be listed."""
    return [
        {"list": "models", "what": "architectures; with a name, its options"},
        {"list": "tasks", "what": "what a model can learn; with a name, its options"},
        {"list": "samples", "what": "built-in data to try things on"},
        {"list": "studies", "what": "claims about sequence models that `seqloom study` measures"},
        {"list": "runs", "what": "trained models and comparisons in runs/, or in another folder"},
    ]


LISTS: dict[str, Callable[[str | None], Rows]] = {
    "models": models, "tasks": tasks, "samples": samples, "studies": studies, "runs": runs,
}  # fmt: skip
_ONE = {"models": "model", "tasks": "task", "studies": "study"}


def _summaries(kind: str) -> Rows:
    """The first line of each module's docstring, without importing it (and torch)."""
    folder = Path(str(find_spec(f"seqloom.{kind}").origin)).parent  # type: ignore[union-attr]
    rows = []
    for name in names(kind):
        file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
        first = file.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
        rows.append({_ONE[kind]: name, "what": first})
    return rows


def _options(kind: str, name: str) -> Rows:
    """The options of a model or task; for a task also those of its data and tokenizer, with the task's defaults."""
    from seqloom.data.shapes import find_shape

    config = find_config(kind, name)
    sections = {_ONE[kind]: config}
    if kind == "tasks":
        shape = find_shape(config.shapes[0])
        sections = {"data": shape.options, "tokenizer": shape.tokenizer} | sections
    defaults = {path: repr(value) for path, value in config.defaults.items()} if kind == "tasks" else {}
    every = [(f"{section}.{option}", *facts) for section, own in sections.items() for option, *facts in options(own)]
    return [{"option": path, "default": defaults.get(path, default), "meaning": text} for path, default, text in every]
