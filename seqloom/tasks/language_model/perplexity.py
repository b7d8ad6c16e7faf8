"""Perplexity, reported with its protocol: the number depends on the unit, the context and the stride.

`loss` is in nats per token and `perplexity` is its exponential; `bits_per_byte` is comparable across tokenizers.
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
from seqloom.core.rows import Json

_AT_ONCE = 2048  # tokens per forward pass


@torch.inference_mode()
def perplexity(
    model: SequenceModel,
    stream: Any,
    *,
    context: int | None = None,
    stride: int = 0,
    streams: int = 1,
    pieces: int = 1,
    byte_counts: np.ndarray | None = None,
) -> Json:
    """Predict every token of the stream except the first, exactly once.

    Without `context`, the state is carried through the whole stream, or for speed through each of `streams` equal rows
    that start from an empty state. With it, windows of `context` tokens start `stride` apart, and each counts only the
    tokens that the previous one did not. With `pieces` > 1, that many equal parts of the stream are also scored
    separately: parts of as many tokens and, with `byte_counts` (bytes of text by id), parts of as many bytes, which are
    the same for every tokenizer.
    """
    total = len(stream) - 1
    if total < 1:
        raise UserError(f"the text to evaluate has {len(stream)} token, and needs 2 or more: give more text")
    was_training, tally = model.training, _Tally(total, pieces)
    by_bytes = tally.by_bytes(stream, byte_counts) if pieces > 1 and byte_counts is not None else None
    model.eval()
    try:
        if context is None:
            starts = range(0, total, math.ceil(total / max(1, min(streams, total))))
            _carried(model, stream, starts, tally)
            how = "through the whole stream" if len(starts) == 1 else f"within each of {len(starts)} streams"
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
    } | (
        ({"pieces": (tally.nats / tally.counts).tolist()} if pieces > 1 else {})
        | ({"pieces_of": {"bits_per_byte": by_bytes.bits()}} if by_bytes is not None else {})
    )


class _Tally:
    """Sums of nats over equal pieces of a stream, whose tokens may be scored in any order."""

    def __init__(self, total: int, pieces: int) -> None:
        self.total, self.pieces = total, min(pieces, total)
        self.nats, self.counts = np.zeros(self.pieces), np.zeros(self.pieces, np.int64)
        self.bytes: _Bytes | None = None

    def by_bytes(self, stream: Any, byte_counts: np.ndarray) -> _Bytes:
        """Also tally pieces of as many bytes."""
        self.bytes = _Bytes(np.cumsum(byte_counts[stream[0 : len(stream)]]), self.pieces)
        return self.bytes

    def add(self, starts: Sequence[int], logits: torch.Tensor, targets: torch.Tensor) -> None:
        """Add predictions of rows that start at these positions of the stream; targets that are IGNORE do not count."""
        logits, targets = logits.flatten(0, 1).float(), targets.flatten()
        losses = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="none")
        positions = np.asarray(starts)[:, None] + np.arange(len(targets) // max(1, len(starts)))
        piece = np.minimum(positions * self.pieces // self.total, self.pieces - 1).ravel()
        real = (targets >= 0).cpu().numpy()
        self.nats += np.bincount(piece, losses.cpu().double().numpy() * real, self.pieces)
        self.counts += np.bincount(piece, real, self.pieces).astype(np.int64)
        if self.bytes is not None:
            self.bytes.add(positions.ravel()[real], losses.cpu().double().numpy()[real])


class _Bytes:
    """Sums of nats over pieces of a stream with equally many bytes; a token counts where it begins."""

    def __init__(self, ends: np.ndarray, pieces: int) -> None:
        """`ends`: bytes up to the end of each token."""
        self.pieces, total = pieces, max(1, int(ends[-1]))
        self.piece = np.minimum(ends[:-1] * pieces // total, pieces - 1)  # of the token after each position
        self.nats, self.size = np.zeros(pieces), total / pieces

    def add(self, positions: np.ndarray, nats: np.ndarray) -> None:
        self.nats += np.bincount(self.piece[positions], nats, self.pieces)

    def bits(self) -> list[float]:
        """Bits per byte of each piece; their mean is the score of the stream."""
        found: list[float] = (self.nats / math.log(2) / self.size).tolist()
        return found


def baselines(stream: Any, vocabulary: int, naive: Json | None) -> dict[str, dict[str, float]]:
    """Naive baselines: the uniform distribution, and add-one smoothed token frequencies of the training set."""
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


def _carried(model: SequenceModel, stream: Any, starts: range, tally: _Tally) -> None:
    span = starts.step
    steps = max(1, _AT_ONCE // len(starts))
    state = None
    for offset in range(0, span, steps):
        length = min(steps, span - offset)
        rows = [stream[start + offset : min(start + offset + length, start + span) + 1] for start in starts]
        inputs, targets, mask = _pad(rows, length, model.device)
        logits, state = model(inputs, state, mask)
        tally.add([start + offset for start in starts], logits, targets)


def _windows(model: SequenceModel, stream: Any, context: int, stride: int, tally: _Tally) -> None:
    for group in _grouped(range(0, max(1, len(stream) - 1 - (context - stride)), stride), _AT_ONCE // context):
        rows = [stream[start : start + context + 1] for start in group]
        inputs, targets, mask = _pad(rows, max(len(row) for row in rows) - 1, model.device)
        for row, start in enumerate(group):
            if start > 0:
                targets[row, : context - stride] = IGNORE  # already counted by the previous window
        logits, _ = model(inputs, None, mask)
        tally.add(group, logits, targets)


def _pad(
    rows: list[np.ndarray], length: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Inputs, targets and, if any row is short, the mask."""
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
