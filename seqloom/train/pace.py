"""How long a training run will take on this machine, from a few steps on a copy of the model."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from seqloom.core.network import SequenceModel
from seqloom.core.progress import Silent
from seqloom.core.rows import Json, Rows
from seqloom.core.task import AnyTask, Order
from seqloom.train.engine import Engine
from seqloom.train.loop import EVALUATIONS, Trainer
from seqloom.train.settings import TrainConfig

_STEPS, _FIRST = 20, 3  # steps that are measured, after the first few, which are slower
_SECONDS, _SHARE = 4.0, 0.02  # of a long training, more are measured, for this time and at most this share of it


@dataclass(frozen=True)
class Estimate:
    epochs: float  # planned
    training: float  # seconds for all of them
    validation: float  # seconds for all validations
    steps: int = _STEPS  # measured

    @property
    def seconds(self) -> float:
        return self.training + self.validation

    def within(self, limit: float) -> tuple[float, float]:
        """The epochs that fit into this many seconds, at most those planned, and how long they take."""
        room = max(limit - self.validation, limit / 2)
        if self.training <= room:
            return self.epochs, self.seconds
        share = room / self.training
        epochs = self.epochs * share
        digits = 1 - math.floor(math.log10(epochs))  # two significant digits, rounded down
        epochs = math.floor(epochs * 10**digits) / 10**digits
        return epochs, self.training * epochs / self.epochs + self.validation


def estimate(
    model: SequenceModel, task: AnyTask, config: TrainConfig, engine: Engine, train: Rows, valid: Rows | None
) -> Estimate:
    """Every process takes part, and all get the same numbers."""
    assert config.epochs is not None
    quiet = config.model_copy(update={"tensorboard": False})
    trainer = Trainer(copy.deepcopy(model), task, quiet, engine, _Nowhere(), Silent())
    order = Order(config.batch, config.seed, config.accumulate, engine.rank, engine.world)
    trainer.model.train()
    batches = task.batches(train, order, trainer.carry)

    def seconds_for(steps: int) -> float:
        started = time.perf_counter()
        for pieces in islice(batches, steps):
            trainer.update(pieces)
        return _together(engine, time.perf_counter() - started)

    seconds_for(_FIRST)
    before, every = trainer.progress.tokens, config.epochs * task.epoch_tokens(train)

    def needed(seconds: float) -> float:
        return seconds * every / max(1, trainer.progress.tokens - before)

    measured = seconds_for(_STEPS)
    room = min(_SECONDS, _SHARE * needed(measured)) / measured
    more = max(0, min(10 * _STEPS, round(_STEPS * (room - 1))))
    measured += seconds_for(more)
    training = needed(measured)
    started = time.perf_counter()
    if valid is not None:
        task.evaluate(trainer.model, valid, quick=True)
    validated = _together(engine, time.perf_counter() - started)
    return Estimate(config.epochs, training, EVALUATIONS * validated, _STEPS + more)


def _together(engine: Engine, seconds: float) -> float:
    """The same number in every process."""
    return engine.total(seconds)[0] / engine.world


def told_time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Nowhere:
    """A store that keeps nothing."""

    path, identity = Path(), None

    def log(self, entry: Json) -> None: ...
    def trim_metrics(self, step: int, validated: int | None = None) -> None: ...
    def save_checkpoint(
        self, step: int, files: Mapping[str, bytes], keep: int, best: int | None, kept: Collection[int]
    ) -> None: ...
    def prune(self, keep: int, best: int | None, kept: Collection[int]) -> None: ...
