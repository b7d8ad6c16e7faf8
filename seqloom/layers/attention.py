"""Attention: every position asks all positions it may see, and takes a mixture of what they hold.

softmax(q k^T / sqrt(D)) v, over H heads of width D (Vaswani et al. 2017, section 3.2).
The fused kernel computes it unless someone watches the weights; both give the same numbers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import stack_of
from seqloom.core.taps import Tap
from seqloom.layers.cache import Cache
from seqloom.layers.norms import RMSNorm
from seqloom.layers.positions import Rotary


class SelfAttention(nn.Module):
    """Causal multi-head self-attention over what the cache holds and what is new."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool, qk_norm: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        stack_of(3, self.qkv.weight)
        self.out = nn.Linear(width, width, bias=bias)
        self.norms = nn.ModuleList(RMSNorm(width // heads) for _ in range(2)) if qk_norm else None
        self.weights = Tap()

    def forward(
        self, x: Tensor, cache: Cache, layer: int, visible: Tensor | None, angles: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)  # (B, H, T, D) each
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        if angles is not None:
            q, k = Rotary.turn(q, angles), Rotary.turn(k, angles)
        keys, values = cache.extend(layer, k, v)
        mixed = self._attend(q, keys, values, visible)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _attend(self, q: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
        causal = visible is None and q.size(2) > 1
        dropout = self.dropout if self.training else 0.0
        if not self.weights.watched:
            return F.scaled_dot_product_attention(q, keys, values, visible, dropout, is_causal=causal)
        if causal:
            visible = torch.ones(q.size(2), keys.size(2), dtype=torch.bool, device=q.device).tril()
        scores = q @ keys.transpose(-1, -2) / math.sqrt(q.size(-1))  # (B, H, T, S)
        if visible is not None:
            scores = scores.masked_fill(~visible, -math.inf)
        return F.dropout(self.weights(scores.softmax(-1)), dropout) @ values
