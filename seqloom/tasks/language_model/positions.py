"""Loss by position: how much what has been read helps, and what happens beyond the length of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.network import SequenceModel
from seqloom.core.state import State

_WINDOWS = 64  # read from nothing, spread over the stream
_TOGETHER = 16  # windows read side by side
_AT_ONCE = 2048  # tokens in one forward pass
_FURTHEST = 8  # times the length of training


@torch.inference_mode()
def loss_by_position(model: SequenceModel, stream: Any, length: int) -> list[dict[str, Any]]:
    """Mean loss where 1-2, 3-4, 5-8, ... tokens have been read: up to `length`, that of training, and beyond.

    All models read the same windows, and each reads as much of them as it can.
    """
    span = min(_FURTHEST * length, len(stream) - 1)
    begins = np.linspace(0, len(stream) - 1 - span, _WINDOWS).astype(int) if span > 0 else np.zeros(0, int)
    begins = np.unique(begins)
    reach = span if model.reach is None else min(span, model.reach)
    was_training = model.training
    model.eval()
    try:
        groups = [begins[n : n + _TOGETHER] for n in range(0, len(begins), _TOGETHER)]
        losses = [_losses(model, np.stack([stream[b : b + reach + 1] for b in group])) for group in groups]
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
    """Of every position of every window, (windows, reach); read in pieces, the state handed on."""
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
    """(first, last) positions: each bucket is as long as all before it, and one ends at `length`."""
    ends = [length >> n for n in range(length.bit_length()) if length >> n > 1]
    ends = [*reversed(ends), *(length * 2**n for n in range(1, _FURTHEST.bit_length()))]
    ends = [*(end for end in ends if end < reach), reach]
    return [(before + 1, end) for before, end in zip([0, *ends], ends, strict=False)]
