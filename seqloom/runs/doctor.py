"""`doctor`: check data for a task before training on it."""

from __future__ import annotations

from typing import Any, Protocol

from seqloom.core.choice import Choice
from seqloom.core.config import as_overrides, validate
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.data.files import declare
from seqloom.data.findings import Finding
from seqloom.data.memory import Data
from seqloom.data.options import DataOptions
from seqloom.data.role_names import flag
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.columns import Columns, column_options, role_of
from seqloom.data.shapes.shape import AnyShape
from seqloom.runs.given import place
from seqloom.runs.registry import find_config

_PROBED = ("gru", "transformer")  # one causal model, and one with a bidirectional encoder


class Leak(Protocol):
    """How many forecasts were repeated with a different future, and how many of them changed."""

    forecasts: int
    moved: int


class ProbedTask(Protocol):
    """A task whose data has a future that predictions must not use."""

    def probe(self, model: SequenceModel, rows: Any) -> Leak: ...


def doctor(
    data: Data,
    *,
    task: str | None = None,
    valid: Data = None,
    columns: Columns | None = None,
    **options: str | int | float | None,
) -> list[Finding]:
    """Check data for mistakes before training on it.

    `data`: a path, or data in memory as in `seqloom.fit`; `valid`: validation data, to find overlap with the training
    data; `columns`: names by role, like {"label": "stars"}; `options`: others of the data section, such as
    `separator="|"`.
    """
    options = {name: value for name, value in options.items() if value is not None}
    placed = place({"train": data, "valid": valid}, task, as_overrides({"data": options}))
    options = placed.data_options | options
    data, valid = placed.specs["train"], placed.specs.get("valid")
    config = find_config("tasks", placed.task or "language_model")
    for spec in (data, valid):
        declare(spec, options.get("encoding"))
    shape = _shape(config, data)
    given = {**column_options(shape, columns or {}), **options}
    try:
        chosen = shape.roles(data, given)
    except UserError as error:
        return [Finding("error", str(error))]
    settings = {"train": data, "valid": valid} | {c.path.removeprefix("data."): c.value for c in chosen} | given
    own = validate({"data": shape.options}, {"data": settings})["data"]
    found = [*_columns(shape, chosen), *shape.examine(own)]
    probes: tuple[Json, ...] = getattr(config, "probes", ())
    if probes and not any(finding.level == "error" for finding in found):
        found.append(probe(config, probes, shape, own))
    return found


def _columns(shape: AnyShape, chosen: list[Choice]) -> list[Finding]:
    """What was chosen because it was not given, and how to change it."""
    if not chosen:
        return []
    options = [choice.path.removeprefix("data.") for choice in chosen]
    roles = [role_of(shape, option) for option in options]
    titles = [role or option for role, option in zip(roles, options, strict=True)]
    shown = ", ".join(f"{title} = {c.value} ({c.reason})" for title, c in zip(titles, chosen, strict=True))
    first = next(filter(None, roles), None)
    change = flag(first) if first else f"-o {chosen[0].path}=..."
    return [Finding("note", f"columns: {shown}", f"{change} to change")]


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
