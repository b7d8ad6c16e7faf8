"""Two ways to learn from few labelled rows on top of a trained encoder.

probe   the output layer is solved by logistic regression on the pooled vectors of the frozen encoder
setfit  before that, the encoder is tuned so that rows of one label are alike and rows of different labels are not
        (Tunstall et al. 2022). Instead of sampled pairs, all pairs of a batch count: 16 rows have 120 pairs at the cost
        of encoding 16 rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Kind
from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json
from seqloom.core.score import Score
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task
from seqloom.layers.logistic import fit_logistic
from seqloom.tasks.classification.inputs import Examples
from seqloom.tasks.classification.pooling import PooledHead

PENALTIES = (0.003, 0.03, 0.3, 3.0)  # values of C to choose from, for standardised vectors
_VALIDATED = 256  # rows of the validation set for the contrastive loss


def head_of(model: SequenceModel) -> PooledHead:
    head = model.part(PooledHead)
    if head is None:
        raise UserError("train.method: this model has no output layer to solve; use one that is trained, such as bert")
    return head


def pooled(model: SequenceModel, batch: Batch) -> Tensor:
    """One vector per row, before the output layer: (B, width)."""
    vectors: Tensor = head_of(model).pooling(model.represent(batch.inputs, batch.mask), batch.mask)
    return vectors.float()


@torch.no_grad()
def solve_head(model: SequenceModel, examples: Iterator[Batch], balanced: bool) -> int:
    """Fit the output layer to the vectors of all examples; returns the tokens read."""
    head, training = head_of(model), model.training
    model.eval()
    vectors, targets, tokens = [], [], 0
    for batch in examples:
        placed = batch.to(model.device)
        vectors.append(pooled(model, placed).cpu().numpy())
        targets.append(batch.targets.numpy())
        tokens += batch.inputs.shape[0] * batch.inputs.shape[1] if batch.mask is None else int(batch.mask.sum())
    model.train(training)
    features = np.concatenate(vectors).astype(np.float64)
    mean, scale = features.mean(0), features.std(0) + 1e-6
    labels = head.out.weight.size(0)
    found = fit_logistic((features - mean) / scale, np.concatenate(targets), labels, balanced, PENALTIES)
    weight = found.weight / scale[:, None]  # (width, labels): the standardisation becomes part of the layer
    head.out.weight.copy_(torch.from_numpy(weight.T))
    head.out.bias.copy_(torch.from_numpy(found.bias - mean @ weight))
    return tokens


class RowTask(Protocol):
    """What is needed of the classification."""

    accepts: frozenset[Kind]

    def embed(self, width: int) -> nn.Module: ...
    def head(self, width: int) -> nn.Module: ...
    def epoch_tokens(self, rows: Examples) -> int: ...
    def collate(self, rows: Examples, chosen: np.ndarray) -> Batch: ...


class Contrast(Task[Examples]):
    """The contrastive objective, on the rows of a classification."""

    name = "contrastive tuning"
    title = ("contrastive tuning", "对比微调")
    encodes = True
    metric = "loss"
    scores = (Score("loss", ("Contrastive loss", "对比损失")),)

    def __init__(self, task: RowTask) -> None:
        self.task, self.accepts = task, task.accepts

    def embed(self, width: int) -> nn.Module:
        return self.task.embed(width)

    def head(self, width: int) -> nn.Module:
        return self.task.head(width)

    def epoch_tokens(self, rows: Examples) -> int:
        return self.task.epoch_tokens(rows)

    def batches(self, rows: Examples, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Batches in which labels are equally frequent, so that every one has pairs of both kinds."""
        pick = _balanced(rows, order.seed)
        for step in count(order.start):
            chosen = pick(step, order.batch)
            yield [self.task.collate(rows, chosen[part]) for part in order.rows()]

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        """Mean squared error of the cosine of every pair, 1 for rows that share a label and 0 for others; both kinds of
        pairs weigh the same."""
        vectors = F.normalize(pooled(model, batch), dim=-1)
        cosines, same, real = vectors @ vectors.T, *_pairs(batch.targets)
        errors = (cosines - same.float()) ** 2
        kinds = [errors[pairs].mean() for pairs in (same & real, ~same & real) if pairs.any()]
        loss = torch.stack(kinds).mean() if kinds else errors.sum() * 0
        tokens = batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())
        return Step(loss * len(vectors), len(vectors), tokens=tokens)

    @torch.inference_mode()
    def evaluate(
        self, model: SequenceModel, rows: Examples, *, naive: Facts | None = None, quick: bool = False,
        brief: bool = False,
    ) -> Json:  # fmt: skip
        training = model.training
        model.eval()
        pick, size, steps, total, seen = _balanced(rows, 0), 32, max(1, min(len(rows), _VALIDATED) // 32), 0.0, 0
        for step in range(steps):
            found = self.loss(model, self.task.collate(rows, pick(step, size)).to(model.device))
            total, seen = total + float(found.loss), seen + found.count
        model.train(training)
        batches = "1 batch" if steps == 1 else f"{steps} batches"
        return {"loss": total / max(1, seen), "protocol": f"contrastive loss, {batches} of {size} rows"}


def _pairs(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Which pairs of rows share a label, and which pairs count: different rows with known labels. (B, B) each."""
    if targets.dim() == 2:
        known, same = targets[:, 0] != IGNORE, (targets @ targets.T) > 0
    else:
        known, same = targets != IGNORE, targets[:, None] == targets
    other = ~torch.eye(len(targets), dtype=torch.bool, device=targets.device)
    return same, other & known[:, None] & known


def _balanced(rows: Examples, seed: int) -> Callable[[int, int], np.ndarray]:
    """A function of (step, size): rows of as many labels as possible, each label in turn, no row twice if there are
    enough. A label is drawn at least twice, so that it has a pair of its own."""
    by_label: dict[int, list[int]] = {}
    for row, labels in enumerate(rows.labels):
        for label in labels:
            by_label.setdefault(label, []).append(row)
    groups: list[Any] = [np.array(members) for _, members in sorted(by_label.items())]

    def pick(step: int, size: int) -> np.ndarray:
        rng = np.random.default_rng((seed, step))
        some = [groups[n] for n in rng.permutation(len(groups))[: max(1, size // 2)]]
        shares = [len(part) for part in np.array_split(np.arange(size), len(some))]
        drawn = [rng.permutation(np.resize(rng.permutation(g), n)) for g, n in zip(some, shares, strict=True)]
        return rng.permutation(np.concatenate(drawn))

    return pick
