"""`doctor`: check data for a task before training on it."""

from __future__ import annotations

from typing import Any, Protocol

from seqloom.core.choice import Choice
from seqloom.core.config import validate
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.data.files import declare
from seqloom.data.findings import Finding
from seqloom.data.options import DataOptions
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.shape import AnyShape
from seqloom.runs.registry import find_config

TITLES = {"column": "text", "second": "second text"}  # of data options that choose a column; others say it themselves
_PROBED = ("gru", "transformer")  # one causal model, and one with a bidirectional encoder


class Leak(Protocol):
    """How many forecasts were repeated with a different future, and how many of them changed."""

    forecasts: int
    moved: int


class ProbedTask(Protocol):
    """A task whose data has a future that predictions must not use."""

    def probe(self, model: SequenceModel, rows: Any) -> Leak: ...


def doctor(
    data: str, *, task: str = "language_model", valid: str | None = None, **columns: str | int | float | None
) -> list[Finding]:
    """Check data for mistakes before training on it.

    `valid`: a validation file, to find overlap with the training data; `columns`: other options of the data section,
    such as `label="stars"`.
    """
    config = find_config("tasks", task)
    for spec in (data, valid):
        declare(spec, columns.get("encoding"))
    shape = _shape(config, data)
    try:
        chosen = shape.roles(data, columns)
    except UserError as error:
        return [Finding("error", str(error))]
    settings = {"train": data, "valid": valid} | {c.path.removeprefix("data."): c.value for c in chosen} | columns
    options = validate({"data": shape.options}, {"data": settings})["data"]
    found = [*_columns(chosen), *shape.examine(options)]
    probes: tuple[Json, ...] = getattr(config, "probes", ())
    if probes and not any(finding.level == "error" for finding in found):
        found.append(probe(config, probes, shape, options))
    return found


def _columns(chosen: list[Choice]) -> list[Finding]:
    """What was chosen because it was not given, and how to change it."""
    if not chosen:
        return []
    roles = [(choice.path.removeprefix("data."), choice) for choice in chosen]
    shown = ", ".join(f"{TITLES.get(role, role)} = {choice.value} ({choice.reason})" for role, choice in roles)
    return [Finding("note", f"columns: {shown}", f"-o {chosen[0].path}=... to change")]


def _shape(config: type[TaskConfig], data: str) -> AnyShape:
    """The shape that this data clearly has, or else the task's default one."""
    default, *others = [find_shape(name) for name in config.shapes]
    return next((shape for shape in others if shape.holds(data)), default)


def probe(config: type[TaskConfig], probes: tuple[Json, ...], shape: AnyShape, options: DataOptions) -> Finding:
    """Check whether predictions on this data depend on the future, under any of these settings.

    Models are not trained: whether the future can leak into a prediction does not depend on the weights.
    """
    train = shape.open_parts(options)["train"]
    vocabulary = shape.make_vocabulary(shape.tokenizer(), train)
    rows, made = shape.prepare(train, vocabulary), 0
    for settings in probes:
        built: Any = config.model_validate(settings).build(vocabulary)
        task: ProbedTask = built
        for name in _PROBED:
            model = find_config("models", name).model_validate({"width": 16}).assemble(built)
            found = task.probe(model, rows)
            if found.moved:
                return Finding("error", f"{name}, {settings}: {found}", "this is a bug: please report it")
            made += found.forecasts
    return Finding(
        "ok", f"leakage probe: {made:,} forecasts in {len(probes)} setups, repeated with another future; none changed"
    )
