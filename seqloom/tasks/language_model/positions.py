"""Loss by position: how much context helps, and what happens beyond the training length."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State

_WINDOWS = 64  # spread over the stream, each read from an empty state
_TOGETHER = 16  # windows per batch
_AT_ONCE = 2048  # tokens per forward pass
_FURTHEST = 8  # times the training length


@torch.inference_mode()
def loss_by_position(model: SequenceModel, stream: Any, length: int) -> list[Json]:
    """Mean loss after 1-2, 3-4, 5-8, ... tokens of context, up to the training length `length` and beyond.

    All models read the same windows, each as far as its reach allows.
    """
    span = min(_FURTHEST * length, len(stream) - 1)
    starts = np.linspace(0, len(stream) - 1 - span, _WINDOWS).astype(int) if span > 0 else np.zeros(0, int)
    starts = np.unique(starts)
    reach = span if model.reach is None else min(span, model.reach)
    was_training = model.training
    model.eval()
    try:
        groups = [starts[n : n + _TOGETHER] for n in range(0, len(starts), _TOGETHER)]
        losses = [_losses(model, np.stack([stream[start : start + reach + 1] for start in group])) for group in groups]
    finally:
        model.train(was_training)
    if not losses:
        return []
    mean = torch.cat(losses).mean(0)  # (reach,)
    return [
        {"from": first, "to": last, "loss": float(mean[first - 1 : last].mean())}
        for first, last in _buckets(length, reach)
    ]


def _losses(model: SequenceModel, ids: np.ndarray) -> Tensor:
    """The loss at each position of each window, (windows, reach); read in chunks, carrying the state."""
    tokens = torch.from_numpy(ids).to(model.device)
    size = max(1, _AT_ONCE // len(ids))
    state: State = None
    losses = []
    for inputs, targets in zip(tokens[:, :-1].split(size, 1), tokens[:, 1:].split(size, 1), strict=True):
        logits, state = model(inputs, state)
        losses.append(F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none"))
    rows = [loss.view(len(ids), -1) for loss in losses]
    return torch.cat(rows, dim=1).cpu().double()


def _buckets(length: int, reach: int) -> list[tuple[int, int]]:
    """(first, last) positions: each bucket is as long as all before it together, and one ends at `length`."""
    ends = [length >> n for n in range(length.bit_length()) if length >> n > 1]
    ends = [*reversed(ends), *(length * 2**n for n in range(1, _FURTHEST.bit_length()))]
    ends = [*(end for end in ends if end < reach), reach]
    return [(before + 1, end) for before, end in zip([0, *ends], ends, strict=False)]
