"""Causal self-attention: every position takes a weighted average of the values it may see.

softmax(q k^T / sqrt(D)) v, over H heads of width D (Vaswani et al. 2017, section 3.2). Query heads may share
keys and values: grouped-query (Ainslie et al. 2023) or multi-query attention (Shazeer 2019).
The fused kernel is used unless scores or weights are replaced; both paths agree up to rounding.
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


class DotProductAttention(nn.Module):
    """softmax(scale q k^T) v, and taps on every part of it. `scale`: None: 1 / sqrt(D)."""

    def __init__(self, heads: int, kv_heads: int, dropout: float, scale: float | None = None) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dropout, self.scale = heads, kv_heads, dropout, scale
        self.query, self.keys, self.values = Tap(), Tap(), Tap()  # (B, H, T, D), (B, kv_heads, S, D) twice
        self.scores, self.weights = Tap(), Tap()  # (B, H, T, S); a score that is not visible is the smallest number
        self.context = Tap()  # (B, H, T, D)

    def attend(self, q: Tensor, keys: Tensor, values: Tensor, views: list[View]) -> Tensor:
        """(B, H, T, D), before the heads are joined."""
        q, keys, values = self.query(q), self.keys(keys), self.values(values)
        if self.weights.edited or self.scores.edited:
            mixed = self._unfused(q, keys, values, views)
        else:
            mixed = self._fused(q, keys, values, views)
            if self.weights.watched or self.scores.watched:
                self._materialised(q, keys, views)
        found: Tensor = self.context(mixed)
        return found

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
        shared = self.kv_heads < self.heads
        return F.scaled_dot_product_attention(
            q, keys, values, visible, dropout, causal, scale=self.scale, enable_gqa=shared
        )

    def _unfused(self, q: Tensor, keys: Tensor, values: Tensor, views: list[View]) -> Tensor:
        """The same, materialising the weights (B, H, T, S)."""
        weights = F.dropout(self._materialised(q, keys, views), self.dropout, self.training)
        values = values.repeat_interleave(self.heads // self.kv_heads, dim=1)
        return torch.cat([weights[:, :, new, old] @ values[:, :, old] for new, old, _ in views], dim=2)

    def _materialised(self, q: Tensor, keys: Tensor, views: list[View]) -> Tensor:
        keys = keys.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scale = 1 / math.sqrt(q.size(-1)) if self.scale is None else self.scale
        scores = torch.cat([_scores(q, keys, view, scale) for view in views], dim=2)
        found: Tensor = self.weights(self.scores(scores).softmax(-1))
        return found


class SelfAttention(DotProductAttention):
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
        super().__init__(heads, kv_heads or heads, dropout)
        self.size = size or width // heads
        self.parts = [heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size]
        self.qkv = Linear(width, sum(self.parts), bias=bias if qkv_bias is None else qkv_bias)
        stack_of(self.parts, self.qkv.weight)
        self.out = Linear(heads * self.size, width, bias=bias)
        self.norms = nn.ModuleList(make_norm("rms", self.size, eps) for _ in range(2)) if qk_norm else None

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
        mixed = self.attend(q, keys, values, views)
        return self.out(mixed.transpose(1, 2).flatten(2))


def _scores(q: Tensor, keys: Tensor, view: View, scale: float) -> Tensor:
    """Scores of a view's new tokens for all slots; the smallest number where a slot is not visible."""
    new, old, visible = view
    scores = q[:, :, new] @ keys[:, :, old].transpose(-1, -2) * scale
    if visible is None and _length(new) > 1:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    least = torch.finfo(scores.dtype).min
    if visible is not None:
        scores = scores.masked_fill(~visible, least)
    return F.pad(scores, (old.start, keys.size(2) - old.stop), value=least)


def _length(part: slice) -> int:
    return part.stop - part.start
