"""What a task must provide for a comparison to measure models on it; tasks implement it structurally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask

LatencyUnit = Literal["token", "source", "row"]


@runtime_checkable
class MeasuredTask(Protocol):
    latency_unit: LatencyUnit  # latency is per generated token, per output for a source, or per row

    def typical_length(self, rows: Any) -> int:
        """Tokens in a typical training row: the length at which FLOPs are counted."""

    def example(self, rows: int, length: int) -> Batch:
        """A batch of this size with targets, always the same."""


@runtime_checkable
class CountsWork(Protocol):
    """A task with its own FLOPs per training token, for example where source tokens are read too."""

    def flops(self, model: SequenceModel, length: int) -> float: ...


@runtime_checkable
class Shows(Protocol):
    """A task that can show what a model does with some rows: the same rows for every model, as JSON for a report.

    `kind` says how it is drawn: confusion, forecasts, tags, answers, pairs or gaps; None: nothing to show.
    """

    def showcase(self, model: SequenceModel, rows: Any) -> Json | None: ...


@runtime_checkable
class ShowsScored(Protocol):
    """A task whose scores contain what is to be shown (`showcase`), so that many rows are not read a second time."""

    def scored_showcase(self, scores: Json, rows: Any) -> Json:
        """`scores`: of an evaluation on these rows."""


@runtime_checkable
class ByPosition(Protocol):
    """A task whose loss can be measured by position: [{"from": 1, "to": 2, "loss": 3.0}, ...]."""

    def by_position(self, model: SequenceModel, rows: Any, length: int) -> list[Json]: ...


class RowReader(NamedTuple):
    """How a whole row is predicted."""

    read: Callable[[Tensor], object]  # from the inputs of one row
    longest: int | None  # row, in tokens; None: any


@runtime_checkable
class ReadsRows(Protocol):
    """A task in which a prediction takes something else than encoding the row, such as a prompt before it."""

    def row_reader(self, model: SequenceModel) -> tuple[Callable[[Tensor], Tensor], int | None]:
        """Predicts for one row; and the longest row. What all rows share is prepared before, once."""


def row_reader(task: AnyTask, model: SequenceModel) -> RowReader:
    return RowReader(*(task.row_reader(model) if isinstance(task, ReadsRows) else (model.encode, model.reach)))


def latency_unit(task: AnyTask) -> LatencyUnit:
    return task.latency_unit if isinstance(task, MeasuredTask) else "row"


def flops(task: AnyTask, model: SequenceModel, length: int) -> float:
    """Forward FLOPs per training token, in rows of this length."""
    return task.flops(model, length) if isinstance(task, CountsWork) else model.flops(length)
