"""Perplexity with its protocol. The number depends on the unit, the context and the stride: it never goes without them.

`loss` is nats per token, `perplexity` its exponential, `bits_per_byte` the one that can be compared
between tokenizers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from seqloom.core.batch import IGNORE
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel

_AT_ONCE = 2048  # tokens in one forward pass


@torch.inference_mode()
def perplexity(
    model: SequenceModel, stream: Any, *, context: int | None = None, stride: int = 0, streams: int = 1
) -> dict[str, Any]:
    """Every token of the stream but the first is predicted once.

    Without `context` the state is carried through the whole stream (cut into `streams` rows that each
    begin with nothing, for speed). With it, windows of `context` tokens are read `stride` apart, and
    each counts only the tokens that the window before it did not.
    """
    total = len(stream) - 1
    if total < 1:
        raise UserError(f"the part to evaluate has {len(stream)} token; at least 2 are needed")
    was_training = model.training
    model.eval()
    try:
        if context is None:
            begins = range(0, total, math.ceil(total / max(1, min(streams, total))))
            nats, count = _carried(model, stream, begins)
            how = "through the whole stream" if len(begins) == 1 else f"in {len(begins)} streams"
            how = f"state carried {how}"
        else:
            stride = min(stride or max(1, context // 2), context)
            nats, count = _windows(model, stream, context, stride)
            how = f"context {context}, stride {stride}"
    finally:
        model.train(was_training)
    loss = nats / count
    return {
        "loss": loss,
        "perplexity": math.exp(loss) if loss < 700 else math.inf,
        "bits_per_byte": nats / math.log(2) / max(1, stream.bytes),
        "tokens": count,
        "bytes": stream.bytes,
        "protocol": f"nats per token, {how}, {count:,} tokens",
    }


def baselines(stream: Any, vocabulary: int, naive: dict[str, Any] | None) -> dict[str, dict[str, float]]:
    """What one gets for nothing: a uniform guess, and the training part's frequencies (plus one each)."""
    total = len(stream) - 1
    nats = {"uniform": total * math.log(vocabulary)}
    if naive is not None:
        seen = np.asarray(naive["unigram"], dtype=np.float64) + 1
        first = int(stream[0:1][0])
        counts = stream.counts - (np.arange(len(stream.counts)) == first)
        nats["unigram"] = float(-(counts * np.log(seen / seen.sum())).sum())
    return {
        name: {
            "loss": n / total,
            "perplexity": math.exp(n / total),
            "bits_per_byte": n / math.log(2) / max(1, stream.bytes),
        }
        for name, n in nats.items()
    }


def _carried(model: SequenceModel, stream: Any, begins: range) -> tuple[float, int]:
    span = begins.step
    steps = max(1, _AT_ONCE // len(begins))
    state, nats, count = None, 0.0, 0
    for offset in range(0, span, steps):
        length = min(steps, span - offset)
        rows = [stream[begin + offset : min(begin + offset + length, begin + span) + 1] for begin in begins]
        inputs, targets, mask = _pad(rows, length, model.device)
        logits, state = model(inputs, state, mask)
        nats, count = nats + _surprise(logits, targets), count + int((targets >= 0).sum())
    return nats, count


def _windows(model: SequenceModel, stream: Any, context: int, stride: int) -> tuple[float, int]:
    nats, count = 0.0, 0
    for group in _grouped(range(0, max(1, len(stream) - 1 - (context - stride)), stride), _AT_ONCE // context):
        rows = [stream[begin : begin + context + 1] for begin in group]
        inputs, targets, mask = _pad(rows, max(len(row) for row in rows) - 1, model.device)
        for row, begin in enumerate(group):
            if begin > 0:
                targets[row, : context - stride] = IGNORE  # the window before has counted these
        logits, _ = model(inputs, None, mask)
        nats, count = nats + _surprise(logits, targets), count + int((targets >= 0).sum())
    return nats, count


def _pad(
    rows: list[np.ndarray], length: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Inputs, targets and, if some row is short, the mask."""
    inputs = torch.zeros(len(rows), length, dtype=torch.long)
    targets = torch.full((len(rows), length), IGNORE)
    for n, row in enumerate(rows):
        size = max(0, len(row) - 1)
        inputs[n, :size] = torch.from_numpy(row[:size])
        targets[n, :size] = torch.from_numpy(row[1 : size + 1])
    mask = targets >= 0
    return inputs.to(device), targets.to(device), None if mask.all() else mask.to(device)


def _surprise(logits: torch.Tensor, targets: torch.Tensor) -> float:
    losses = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE, reduction="none")
    return float(losses.cpu().double().sum())  # not every device has doubles


def _grouped(items: range, size: int) -> Iterator[list[int]]:
    for start in range(0, len(items), max(1, size)):
        yield list(items[start : start + max(1, size)])
