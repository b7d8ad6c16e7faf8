"""Who takes part: every causal model that is trained by gradient descent from nothing, all at one size."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path

import torch

from seqloom.core.config import merge, parse_overrides, validate
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.diagnose import problems
from seqloom.diagnose.problems import PROBLEMS, Problem
from seqloom.diagnose.rules import Rules
from seqloom.diagnose.task import ProblemTask
from seqloom.lab.entries import Entry, parse_entries
from seqloom.lab.measure import resized
from seqloom.runs.registry import find_config, names


def field(models: str | Sequence[str] | None, rules: Rules) -> tuple[list[Entry], dict[str, str]]:
    """The entries that were named, or all that can take part, and why the others cannot."""
    if models is not None:
        entries = parse_entries(models.split(",") if isinstance(models, str) else models)
        for entry in entries:
            check(entry, rules)
        return entries, {}
    entries, left_out = [], {}
    for entry in (Entry(name, name) for name in names("models")):
        try:
            check(entry, rules)
            entries.append(entry)
        except UserError as error:
            left_out[entry.name] = str(error).removeprefix(f"{entry.name}: ")
            last = error
    if not entries:
        raise UserError(f"no model can take part; the last one: {last}")
    return entries, left_out


def check(entry: Entry, rules: Rules) -> None:
    """Raise, in one line, if this model cannot take part; the problem with the most tokens is the hardest to match."""
    problem = max((PROBLEMS[name] for name in rules.problems), key=lambda found: found.vocabulary)
    task, config = ProblemTask(problem), _configured(entry, rules.depth, problem)
    try:
        with torch.device("meta"):
            descends = config.assemble(task).descends
    except UserError as error:
        raise UserError(f"{entry.name}: {error}") from None
    if not descends:
        raise UserError(f"{entry.name}: it is not trained by gradient descent; diagnose takes models that are")
    sized(entry, rules, problem)


def sized(entry: Entry, rules: Rules, problem: Problem) -> ModelConfig:
    """With as many parameters as every other model, unless it would have to be wider than is allowed."""
    config = resized(
        _configured(entry, rules.depth, problem), ProblemTask(problem, rules.tested), rules.parameters, entry.name
    )
    return config.model_copy(update={"width": rules.widest}) if config.width > rules.widest else config


def _configured(entry: Entry, depth: int, problem: Problem) -> ModelConfig:
    """Its defaults and what the user set, with at most `depth` layers; dropout would only slow down what cannot
    overfit."""
    given = merge(parse_overrides(entry.options))
    if strange := set(given) - {"model"}:
        raise UserError(f"--models {entry.name}: only options of the model may be set, not {min(strange)}")
    kind = find_config("models", entry.model)
    common: Json = {"dropout": 0.0}
    if "depth" in kind.model_fields:
        common["depth"] = min(depth, kind.model_fields["depth"].default)
    config: ModelConfig = validate({"model": kind}, {"model": common | given.get("model", {})})["model"]
    return config.reading(max(problem.lengths))


def code_of(entry: Entry) -> str:
    """A hash of the model's file, of the problems and of the version: after an edit, old results do not count."""
    files = [inspect.getfile(find_config("models", entry.model)), problems.__file__]
    content = b"".join(Path(path).read_bytes() for path in files) + VERSION.encode()
    return hashlib.sha256(content).hexdigest()[:16]
