"""Causal self-attention: every position takes a weighted average of the values it may see.

softmax(q k^T / sqrt(D)) v, over H heads of width D (Vaswani et al. 2017, section 3.2). Query heads may share
keys and values: grouped-query (Ainslie et al. 2023) or multi-query attention (Shazeer 2019).
The fused kernel is used unless the weights are replaced; both paths agree up to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import stack_of
from seqloom.core.taps import Tap
from seqloom.layers.cache import Cache
from seqloom.layers.linear import Linear
from seqloom.layers.norms import make_norm
from seqloom.layers.positions import Rotary
from seqloom.layers.views import View


class SelfAttention(nn.Module):
    """Causal multi-head self-attention over the cached and the new tokens.

    There are `kv_heads` key/value heads (0: one per query head), each shared by a group of consecutive query heads.
    `size`: of a head; 0: width / heads. `qkv_bias`: biases of queries, keys and values; None: as `bias`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float,
        bias: bool,
        qk_norm: bool,
        kv_heads: int = 0,
        eps: float = 0.0,
        *,
        size: int = 0,
        qkv_bias: bool | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size, self.dropout = heads, kv_heads or heads, size or width // heads, dropout
        self.parts = [heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size]
        self.qkv = Linear(width, sum(self.parts), bias=bias if qkv_bias is None else qkv_bias)
        stack_of(self.parts, self.qkv.weight)
        self.out = Linear(heads * self.size, width, bias=bias)
        self.norms = nn.ModuleList(make_norm("rms", self.size, eps) for _ in range(2)) if qk_norm else None
        self.weights = Tap()

    def forward(
        self, x: Tensor, cache: Cache, layer: int, views: list[View], angles: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        parts = self.qkv(x).split(self.parts, dim=-1)
        q, k, v = (part.unflatten(-1, (-1, self.size)).transpose(1, 2) for part in parts)  # (B, H, T, D) each
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        if angles is not None:
            q, k = Rotary.turn(q, angles), Rotary.turn(k, angles)
        keys, values = cache.extend(layer, k, v)
        mixed = (self._unfused if self.weights.edited else self._fused)(q, keys, values, views)
        if self.weights.watched and not self.weights.edited:
            self._materialised(q, keys, views)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _fused(self, q: Tensor, keys: Tensor, values: Tensor, views: list[View]) -> Tensor:
        if len(views) == 1:
            return self._product(q, keys, values, views[0].visible)
        parts = q.split([_length(view.new) for view in views], dim=2)
        mixed = [
            self._product(part, keys[:, :, old], values[:, :, old], visible)
            for part, (_, old, visible) in zip(parts, views, strict=True)
        ]
        return torch.cat(mixed, dim=2)

    def _product(self, q: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
        dropout, causal = self.dropout if self.training else 0.0, visible is None and q.size(2) > 1
        grouped = self.kv_heads < self.heads
        return F.scaled_dot_product_attention(q, keys, values, visible, dropout, causal, enable_gqa=grouped)

    def _unfused(self, q: Tensor, keys: Tensor, values: Tensor, views: list[View]) -> Tensor:
        """The same, materialising the weights (B, H, T, S)."""
        weights = F.dropout(self._materialised(q, keys, views), self.dropout, self.training)
        values = values.repeat_interleave(self.heads // self.kv_heads, dim=1)
        return torch.cat([weights[:, :, new, old] @ values[:, :, old] for new, old, _ in views], dim=2)

    def _materialised(self, q: Tensor, keys: Tensor, views: list[View]) -> Tensor:
        keys = keys.repeat_interleave(self.heads // self.kv_heads, dim=1)
        found: Tensor = self.weights(torch.cat([_weights(q, keys, view) for view in views], dim=2))
        return found


def _weights(q: Tensor, keys: Tensor, view: View) -> Tensor:
    """Attention weights of a view's new tokens over all slots; zero outside the view."""
    new, old, visible = view
    scores = q[:, :, new] @ keys[:, :, old].transpose(-1, -2) / math.sqrt(q.size(-1))
    if visible is None and _length(new) > 1:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    return F.pad(scores.softmax(-1), (old.start, keys.size(2) - old.stop))


def _length(part: slice) -> int:
    return part.stop - part.start
