"""Attention over a complete sequence: cross-attention to a source, or bidirectional self-attention in an encoder.

softmax(q k^T / sqrt(D)) v over H heads of width D (Vaswani et al. 2017, section 3.2). Keys and values are computed
once, by `read`, and kept during decoding. The fused kernel is used unless scores or weights are replaced.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import stack_of
from seqloom.core.taps import Tap
from seqloom.layers.linear import Linear


class SourceAttention(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.kv = Linear(width, width, bias=bias), Linear(width, 2 * width, bias=bias)
        stack_of(2, self.kv.weight)
        self.out = Linear(width, width, bias=bias)
        self.query, self.keys, self.values = Tap(), Tap(), Tap()  # (B, H, T, D), (B, H, S, D) twice
        self.scores, self.alignment = Tap(), Tap()  # (B, H, T, S); the score of padding is the smallest number
        self.context = Tap()  # (B, H, T, D)

    def read(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, D) of a source (B, S, width)."""
        k, v = self.kv(source).chunk(2, dim=-1)
        return self._split(k), self._split(v)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
        """`visible` (B, 1, 1, S): True where not padding; None: no padding."""
        q, keys, values = self.query(self._split(self.q(x))), self.keys(keys), self.values(values)
        if self.alignment.edited or self.scores.edited:
            mixed = self._weights(q, keys, visible) @ values
        else:
            mixed = F.scaled_dot_product_attention(q, keys, values, visible)
            if self.alignment.watched or self.scores.watched:
                self._weights(q, keys, visible)
        return self.out(self.context(mixed).transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _weights(self, q: Tensor, keys: Tensor, visible: Tensor | None) -> Tensor:
        scores = q @ keys.transpose(-1, -2) / math.sqrt(q.size(-1))  # (B, H, T, S)
        if visible is not None:
            scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
        found: Tensor = self.alignment(self.scores(scores).softmax(-1))
        return found


def visible_source(mask: Tensor | None) -> Tensor | None:
    """(B, S) -> (B, 1, 1, S); an all-padding row sees its padding, because softmax over nothing is NaN."""
    if mask is None:
        return None
    return (mask | ~mask.any(1, keepdim=True))[:, None, None]
