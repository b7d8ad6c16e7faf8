"""Pooling: one vector for a whole sequence, by one of five rules; padding is ignored.

mean       the mean over all positions
max        the largest value of each dimension
last       the last real position, where a causal model has read everything
first      the first position, a special token in which an encoder gathers the sequence
attention  the mean weighted by attention from one learned query
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.network import Summary
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear

Rule = Literal["mean", "max", "last", "first", "attention"]


class Pooling(nn.Module):
    """(B, T, width) -> (B, width)."""

    def __init__(self, width: int, rule: Rule) -> None:
        super().__init__()
        self.rule = rule
        self.query = nn.Parameter(torch.zeros(width)) if rule == "attention" else None
        self.weights = Tap()

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """A row that is all padding gives zeros, or its first position."""
        if mask is None:
            mask = hidden.new_ones(hidden.shape[:2], dtype=torch.bool)
        if self.rule == "first":
            return hidden[:, 0]
        if self.rule == "last":
            last = (mask.sum(1) - 1).clamp(min=0)
            return hidden[torch.arange(len(hidden), device=hidden.device), last]
        if self.rule == "max":
            largest = hidden.masked_fill(~mask[..., None], -math.inf).amax(1)
            return largest.masked_fill(~mask.any(1, keepdim=True), 0.0)
        found: Tensor = (self.weights(self._position_weights(hidden, mask))[..., None] * hidden).sum(1)
        return found

    def _position_weights(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The weight of each position, (B, T)."""
        if self.query is None:
            return mask / mask.sum(1, keepdim=True).clamp(min=1)
        scores = (hidden @ self.query / math.sqrt(hidden.size(-1))).masked_fill(~mask, -math.inf)
        return scores.masked_fill(~mask.any(1, keepdim=True), 0.0).softmax(-1) * mask


class PooledHead(Summary):
    """Pooling, then a linear layer; the logits are divided by `temperature`, which is fitted after training."""

    def __init__(self, width: int, outputs: int, rule: Rule, dropout: float = 0.0) -> None:
        super().__init__()
        self.pooling, self.dropout = Pooling(width, rule), Dropout(dropout)
        self.out = Linear(width, outputs)
        self.temperature: Tensor
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.out(self.dropout(self.pooling(hidden, mask))) / self.temperature
        return found
