"""How a run learns (`train.method`): by gradient descent, by solving its output layer on a frozen encoder (probe), or
by tuning the encoder first (setfit)."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Rows
from seqloom.core.task import AnyTask
from seqloom.runs.settings import RunConfig
from seqloom.train.clock import Clock
from seqloom.train.loop import Progress
from seqloom.train.transfer import freeze


@runtime_checkable
class ProbedTask(Protocol):
    """A task whose output layer can be solved on a frozen encoder."""

    def solve_head(self, model: SequenceModel, rows: Any) -> int:
        """Fit it to all rows; returns the tokens read."""

    def contrast(self) -> AnyTask:
        """The objective that tunes the encoder before."""


def descends(config: RunConfig) -> bool:
    """Whether this way of learning has gradient descent in it."""
    return config.train.method in ("descent", "setfit")


def objective(config: RunConfig, model: SequenceModel, task: AnyTask) -> AnyTask | None:
    """What gradient descent is to minimise; None: nothing, the output layer alone is solved."""
    method = config.train.method
    if method == "descent":
        return task
    if not isinstance(task, ProbedTask):
        raise UserError(f"train.method={method}: {task.name} does not support it; classification does")
    if not model.descends:
        raise UserError(f"train.method={method}: {config.model['name']} has no encoder; leave it out")
    if config.lora.rank:
        raise UserError(f"train.method={method}: does not combine with adapters; leave out lora.rank or train.method")
    if method == "probe":
        freeze(model, len(model.stages()) - 1)
        return None
    return task.contrast()


def solve(config: RunConfig, model: SequenceModel, task: Any, train: Rows, progress: Progress) -> None:
    """Solve the output layer, and count what that takes."""
    clock = Clock(config.train.clock, model.device.type)
    progress.tokens += task.solve_head(model, train)
    spent = clock.lap()
    progress.seconds += spent.seconds
    progress.wall += spent.wall
