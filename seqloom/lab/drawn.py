"""Tasks whose rows are drawn on the fly from a seed: no row is seen twice, and nothing is read from a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.network import SequenceModel
from seqloom.core.score import Score
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task

FRESH = 2**62  # a step beyond any training run: its rows are held out


@dataclass(frozen=True)
class Drawn:
    """`steps` batches of `batch` rows, of at most `length` tokens each."""

    seed: int
    steps: int
    batch: int
    length: int

    def __len__(self) -> int:
        return self.steps * self.batch

    @property
    def tokens(self) -> int:
        return len(self) * self.length


class DrawnTask(Task[Drawn]):
    """Predict one of `outputs` answers at every position that has a target."""

    accepts = frozenset({"causal"})
    metric = "accuracy"
    scores = (Score("accuracy", ("Accuracy", "准确率"), higher_is_better=True),)
    vocabulary: int
    outputs: int

    @abstractmethod
    def draw_batch(self, rows: int, seed: int, step: int) -> Batch:
        """Rows for one step of training."""

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.outputs)

    def batches(self, rows: Drawn, order: Order, carry: bool) -> Iterator[list[Batch]]:
        for step in range(order.start, FRESH):
            whole = self.draw_batch(order.batch, order.seed, step)
            yield [Batch(whole.inputs[mine], None, whole.targets[mine], origin=self.name) for mine in order.rows()]

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        logits, state = model(batch.inputs[:, : model.reach], state)
        targets = batch.targets[:, : model.reach]
        total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")
        return Step(total, int((targets >= 0).sum()), state)


def generator(seed: int, step: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(np.random.default_rng((seed, step)).integers(2**62)))
