"""The Transformer block: attention, then a feed-forward network, each on a residual path."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import stack_of
from seqloom.layers.attention import SelfAttention
from seqloom.layers.cache import Cache


class FeedForward(nn.Module):
    """Two matrices with a bend between (GELU), or three with a learned gate (SwiGLU, Shazeer 2020)."""

    def __init__(self, width: int, hidden: int, gated: bool, bias: bool) -> None:
        super().__init__()
        self.gated = gated
        self.up = nn.Linear(width, hidden * (2 if gated else 1), bias=bias)
        stack_of(2 if gated else 1, self.up.weight)
        self.out = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        if self.gated:
            gate, x = x.chunk(2, dim=-1)
            return self.out(F.silu(gate) * x)
        return self.out(F.gelu(x, approximate="tanh"))


class Block(nn.Module):
    def __init__(
        self, attention: SelfAttention, feed: FeedForward, norms: tuple[nn.Module, nn.Module], pre: bool, dropout: float
    ) -> None:
        super().__init__()
        self.attention, self.feed, self.pre = attention, feed, pre
        self.norm_1, self.norm_2 = norms
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, cache: Cache, layer: int, visible: Tensor | None, angles: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        if self.pre:
            x = x + self.dropout(self.attention(self.norm_1(x), cache, layer, visible, angles))
            return x + self.dropout(self.feed(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, cache, layer, visible, angles)))
        return self.norm_2(x + self.dropout(self.feed(x)))
