"""How long a training run will take on this machine, from a few steps on a copy of the model."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
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

STEPS, _FIRST = 20, 3  # steps that are measured, after the first few, which are slower


@dataclass(frozen=True)
class Estimate:
    epochs: float  # planned
    training: float  # seconds for all of them
    validation: float  # seconds for all validations

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
    for pieces in islice(batches, _FIRST):
        trainer.update(pieces)
    before, started = trainer.progress.tokens, time.perf_counter()
    for pieces in islice(batches, STEPS):
        trainer.update(pieces)
    trained, read = time.perf_counter() - started, max(1, trainer.progress.tokens - before)
    started = time.perf_counter()
    if valid is not None:
        task.evaluate(trainer.model, valid, quick=True)
    validated = time.perf_counter() - started
    training, validation = (n / engine.world for n in engine.total(trained, validated))
    every = config.epochs * task.epoch_tokens(train)
    return Estimate(config.epochs, training * every / read, EVALUATIONS * validation)


def told_time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Nowhere:
    """A store that keeps nothing."""

    path = Path()

    def log(self, entry: Json) -> None: ...
    def trim_metrics(self, step: int, validated: int | None = None) -> None: ...
    def save_checkpoint(self, step: int, files: Mapping[str, bytes], keep: int, best: int | None) -> None: ...
