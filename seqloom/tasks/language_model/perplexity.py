"""Perplexity with its protocol. The number depends on the unit, the context and the stride: it never goes without them.

`loss` is nats per token, `perplexity` its exponential, `bits_per_byte` the one that can be compared
between tokenizers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
    model: SequenceModel,
    stream: Any,
    *,
    context: int | None = None,
    stride: int = 0,
    streams: int = 1,
    pieces: int = 1,
) -> dict[str, Any]:
    """Every token of the stream but the first is predicted once.

    Without `context` the state is carried through the whole stream (cut into `streams` rows that each
    begin with nothing, for speed). With it, windows of `context` tokens are read `stride` apart, and
    each counts only the tokens that the window before it did not. `pieces` of the stream, all as long, are
    scored one by one too.
    """
    total = len(stream) - 1
    if total < 1:
        raise UserError(f"the part to evaluate has {len(stream)} token; at least 2 are needed")
    was_training, tally = model.training, _Tally(total, pieces)
    model.eval()
    try:
        if context is None:
            begins = range(0, total, math.ceil(total / max(1, min(streams, total))))
            _carried(model, stream, begins, tally)
            how = "through the whole stream" if len(begins) == 1 else f"in {len(begins)} streams"
            how = f"state carried {how}"
        else:
            stride = min(stride or max(1, context // 2), context)
            _windows(model, stream, context, stride, tally)
            how = f"context {context}, stride {stride}"
    finally:
        model.train(was_training)
    nats, count = float(tally.nats.sum()), int(tally.counts.sum())
    loss = nats / count
    return {
        "loss": loss,
        "perplexity": math.exp(loss) if loss < 700 else math.inf,
        "bits_per_byte": nats / math.log(2) / max(1, stream.bytes),
        "tokens": count,
        "bytes": stream.bytes,
        "protocol": f"nats per token, {how}, {count:,} tokens",
    } | ({"pieces": (tally.nats / tally.counts).tolist()} if pieces > 1 else {})


class _Tally:
    """Sums of nats over equal pieces of a stream, wherever and in whatever order its tokens are scored."""

    def __init__(self, total: int, pieces: int) -> None:
        self.total, self.pieces = total, min(pieces, total)
        self.nats, self.counts = np.zeros(self.pieces), np.zeros(self.pieces, np.int64)

    def add(self, begins: Sequence[int], logits: torch.Tensor, targets: torch.Tensor) -> None:
        """Predictions of rows that begin at these places of the stream; what is IGNOREd does not count."""
        logits, targets = logits.flatten(0, 1).float(), targets.flatten()
        losses = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="none")
        places = np.asarray(begins)[:, None] + np.arange(len(targets) // max(1, len(begins)))
        piece = np.minimum(places * self.pieces // self.total, self.pieces - 1).ravel()
        real = (targets >= 0).cpu().numpy()
        self.nats += np.bincount(piece, losses.cpu().double().numpy() * real, self.pieces)
        self.counts += np.bincount(piece, real, self.pieces).astype(np.int64)


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


def _carried(model: SequenceModel, stream: Any, begins: range, tally: _Tally) -> None:
    span = begins.step
    steps = max(1, _AT_ONCE // len(begins))
    state = None
    for offset in range(0, span, steps):
        length = min(steps, span - offset)
        rows = [stream[begin + offset : min(begin + offset + length, begin + span) + 1] for begin in begins]
        inputs, targets, mask = _pad(rows, length, model.device)
        logits, state = model(inputs, state, mask)
        tally.add([begin + offset for begin in begins], logits, targets)


def _windows(model: SequenceModel, stream: Any, context: int, stride: int, tally: _Tally) -> None:
    for group in _grouped(range(0, max(1, len(stream) - 1 - (context - stride)), stride), _AT_ONCE // context):
        rows = [stream[begin : begin + context + 1] for begin in group]
        inputs, targets, mask = _pad(rows, max(len(row) for row in rows) - 1, model.device)
        for row, begin in enumerate(group):
            if begin > 0:
                targets[row, : context - stride] = IGNORE  # the window before has counted these
        logits, _ = model(inputs, None, mask)
        tally.add(group, logits, targets)


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


def _grouped(items: range, size: int) -> Iterator[list[int]]:
    for start in range(0, len(items), max(1, size)):
        yield list(items[start : start + max(1, size)])
