"""What is asked of a task so that a comparison can measure models on it. Tasks have it without knowing of it."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask

LatencyUnit = Literal["token", "source", "row"]


@runtime_checkable
class MeasuredTask(Protocol):
    latency_unit: LatencyUnit  # latency is per generated token, per whole output of a source, or per row

    def typical_length(self, rows: Any) -> int:
        """Tokens of a typical training row: the length at which operations are counted."""

    def example(self, rows: int, length: int) -> Batch:
        """Inputs of that size with targets, always the same."""


@runtime_checkable
class CountsWork(Protocol):
    """A task in which a token that counts costs other than one that is read."""

    def flops(self, model: SequenceModel, length: int) -> float: ...


@runtime_checkable
class Shows(Protocol):
    """A task that can show what a model makes of a row: prompt, text and wanted; None: nothing to show."""

    def sample(self, model: SequenceModel, rows: Any) -> dict[str, str] | None: ...


@runtime_checkable
class ByPosition(Protocol):
    """A task whose loss depends on how much was read: [{"from": 1, "to": 2, "loss": 3.0}, ...]."""

    def by_position(self, model: SequenceModel, rows: Any, length: int) -> list[Json]: ...


def measured(task: AnyTask) -> MeasuredTask:
    assert isinstance(task, MeasuredTask), f"{task.name} cannot be compared: it has no example, length or latency unit"
    return task


def flops(task: AnyTask, model: SequenceModel, length: int) -> float:
    """Forward operations for one token that counts in training, in rows of that length."""
    return task.flops(model, length) if isinstance(task, CountsWork) else model.flops(length)
