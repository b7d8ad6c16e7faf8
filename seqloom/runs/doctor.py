"""`doctor`: what is wrong with data that is meant for a task, before any training."""

from __future__ import annotations

from typing import Any, Protocol

from seqloom.core.config import validate
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.data.findings import Finding
from seqloom.data.options import DataOptions
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.shape import AnyShape
from seqloom.runs.registry import find_config

_PROBED = ("gru", "transformer")  # a model that reads one way, and one that sees the history whole


class Leak(Protocol):
    """How many forecasts were made again with another future, and how many of them moved."""

    forecasts: int
    moved: int


class ProbedTask(Protocol):
    """What is asked of a task whose data has a future that predictions must not see."""

    def probe(self, model: SequenceModel, rows: Any) -> Leak: ...


def doctor(
    data: str, *, task: str = "language_model", valid: str | None = None, **columns: str | int | float | None
) -> list[Finding]:
    """Look for mistakes in data before any training.

    `valid`: a file to validate on, to see what is in both; `columns`: further options of the data section, such as
    `label="stars"`.
    """
    config = find_config("tasks", task)
    shape = _shape(config, data)
    settings = {"train": data, "valid": valid} | columns
    options = validate({"data": shape.options}, {"data": settings})["data"]
    found = shape.examine(options)
    probes: tuple[Json, ...] = getattr(config, "probes", ())
    if probes and not any(finding.level == "error" for finding in found):
        found.append(probe(config, probes, shape, options))
    return found


def _shape(config: type[TaskConfig], data: str) -> AnyShape:
    """The shape that this data has without doubt, or else the task's usual one."""
    usual, *others = [find_shape(name) for name in config.shapes]
    return next((shape for shape in others if shape.holds(data)), usual)


def probe(config: type[TaskConfig], probes: tuple[Json, ...], shape: AnyShape, options: DataOptions) -> Finding:
    """Whether predictions of this data see the future, under any of these settings.

    Models are not trained: whether the future can reach a prediction does not depend on the weights.
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
                return Finding("error", f"{name}, {settings}: {found}", "please report it")
            made += found.forecasts
    return Finding(
        "ok", f"leakage probe: {made:,} forecasts in {len(probes)} ways, made again with another future; none moved"
    )
