"""A recall probe: how far back can a small version of an architecture, trained for seconds, recall one item?

    f f MARK item f f f QUERY f f f f QUERY f ...       the target at every QUERY is the item that followed MARK

The fillers f are items too, so that only MARK tells which one to remember. Every architecture has its own shape and the
same number of parameters, and gets the same batches and settings: those of `fit` with higher learning rates. Training
ends early when there is nothing left to learn. Several seeds tell how much is luck. The control is a QUERY right after
the item: a model that does not even answer that has not learned the task in the steps given, and its answers say
nothing about distance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json
from seqloom.core.task import AnyTask, Order
from seqloom.lab.drawn import FRESH, Drawn, DrawnTask, generator
from seqloom.train.optimizers import Optimizers
from seqloom.train.settings import TrainConfig

DISTANCES = (2, 4, 8, 16, 32, 64)
CONTROL = 1
ASKED = (CONTROL, *DISTANCES)
ITEMS = 16
CHANCE = 1 / ITEMS
PARAMETERS = 40_000
_BATCH = 20
_MARK, _QUERY = ITEMS, ITEMS + 1
_START = 8  # MARK is one of the first eight tokens
_LENGTH = _START + 1 + max(DISTANCES)
_TESTED = 256  # test rows per distance
_LEARNED, _RECENT = 0.015, 10  # nats per query, mean over the last batches, at which all is learned

Resize = Callable[[ModelConfig, AnyTask, int], ModelConfig]  # match the number of parameters for a task


def recall(model_config: ModelConfig, seed: int, steps: int, resize: Resize) -> list[Json]:
    """[{"distance": 1, "accuracy": 0.99}, ...]: the control and all distances up to the longest that the model can
    read, after at most `steps` steps."""
    task = RecallTask()
    config = model_config.model_copy(update={"dropout": 0.0})
    with torch.device("meta"):
        descends = config.assemble(task).descends
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = (resize(config, task, PARAMETERS) if descends else config).assemble(task)
        _train(model, task, seed, steps)
    found: list[Json] = task.evaluate(model, Drawn(seed, steps, _BATCH, _LENGTH))["recall"]
    return found


def over_seeds(found: Sequence[Sequence[Json]]) -> Json:
    """`recall`: [{"distance": 2, "accuracy": 0.99, "low": 0.97, "high": 1.0}, ...], mean and range over seeds;
    `control`: the same for the control, or None."""
    points = [_range(*same) for same in zip(*found, strict=True)]
    control = next((point for point in points if point["distance"] == CONTROL), None)
    return {"recall": [point for point in points if point is not control], "control": control}


def _range(*points: Json) -> Json:
    values = [point["accuracy"] for point in points]
    return {"distance": points[0]["distance"], "accuracy": fmean(values), "low": min(values), "high": max(values)}


class RecallTask(DrawnTask):
    """Predict the item that followed MARK."""

    name = "recall"
    title = ("recall", "回忆")
    vocabulary = outputs = ITEMS + 2
    binned = None

    def draw_batch(self, rows: int, seed: int, step: int) -> Batch:
        drawn = generator(seed, step)
        return draw(torch.rand(rows, len(ASKED), generator=drawn) < 0.5, drawn)

    def drawn(self, rows: Drawn) -> Iterator[Batch]:
        """All batches in order."""
        batches = self.batches(rows, Order(rows.batch, rows.seed), carry=False)
        return (piece for _, (piece,) in zip(range(rows.steps), batches, strict=False))

    def stream(self, rows: Drawn) -> np.ndarray:
        """Training text for count-based models: each row up to a query, then the target."""
        return torch.cat([text for batch in self.drawn(rows) for text in _as_text(batch)]).numpy()

    @torch.inference_mode()
    def evaluate(
        self, model: SequenceModel, rows: Drawn, *, naive: Facts | None = None, quick: bool = False, brief: bool = False
    ) -> Json:
        """Accuracy on held-out rows, each with a query at a single distance."""
        fresh = generator(rows.seed, FRESH)
        model.eval()
        found = []
        for n, distance in enumerate(ASKED):
            length = _START + 1 + distance
            if model.reach is not None and length > model.reach:
                break
            batch = draw(torch.arange(len(ASKED)).eq(n).expand(_TESTED, -1), fresh).to(model.device)
            right = model(batch.inputs[:, :length])[0].argmax(-1) == batch.targets[:, :length]
            found.append({"distance": distance, "accuracy": float(right.sum()) / _TESTED})
        mean = sum(f["accuracy"] for f in found) / max(1, len(found))
        return {"accuracy": mean, "recall": found, "protocol": f"share of items recalled, {_TESTED} rows per distance"}


def draw(queried: Tensor, generator: torch.Generator) -> Batch:
    """Rows with a query at the selected distances; `queried` is (rows, distances asked)."""
    rows = torch.arange(len(queried))
    inputs = torch.randint(ITEMS, (len(queried), _LENGTH), generator=generator)
    targets = torch.full_like(inputs, IGNORE)
    mark = torch.randint(_START, (len(queried),), generator=generator)
    inputs[rows, mark] = _MARK
    items = inputs[rows, mark + 1]
    for n, distance in enumerate(ASKED):
        row = rows[queried[:, n]]
        query = mark[row] + 1 + distance
        inputs[row, query] = _QUERY
        targets[row, query] = items[row]
    return Batch(inputs, None, targets, origin="recall")


def _train(model: SequenceModel, task: RecallTask, seed: int, steps: int) -> None:
    config = TrainConfig.model_validate({"steps": steps, "rate": 8e-3, "matrix_rate": 0.03})
    drawn = Drawn(seed, steps, _BATCH, _LENGTH)
    if model.learn(task, drawn) is not None:
        return
    optimizers, recent = Optimizers(model, config), deque[float](maxlen=_RECENT)
    model.train()
    for step, batch in enumerate(task.drawn(drawn)):
        piece = task.loss(model, batch)
        (piece.loss / max(1, piece.count)).backward()
        nn.utils.clip_grad_norm_(optimizers.parameters, config.clip)
        optimizers.step(step / steps, step)
        optimizers.zero_grad()
        recent.append(float(piece.loss.detach()) / max(1, piece.count))
        if len(recent) == _RECENT and fmean(recent) < _LEARNED:
            break


def _as_text(batch: Batch) -> Iterator[Tensor]:
    for row, query in (batch.targets >= 0).nonzero().tolist():
        yield torch.cat((batch.inputs[row, : query + 1], batch.targets[row, query, None]))
