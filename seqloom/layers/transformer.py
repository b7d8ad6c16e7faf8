"""Transformer blocks: attention and a feed-forward network with residual connections; causal or bidirectional."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import stack_of
from seqloom.core.taps import Tap
from seqloom.layers.attention import SelfAttention
from seqloom.layers.cache import Cache
from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear
from seqloom.layers.source_attention import SourceAttention
from seqloom.layers.views import View


class FeedForward(nn.Module):
    """Two linear layers with an activation (`bend`) between, or three with a gate (SwiGLU, Shazeer 2020)."""

    def __init__(self, width: int, hidden: int, gated: bool, bias: bool, bend: str = "gelu") -> None:
        super().__init__()
        self.gated, self.bend = gated, ACTIVATIONS[bend]
        self.up = Linear(width, hidden * (2 if gated else 1), bias=bias)
        stack_of(2 if gated else 1, self.up.weight)
        self.out = Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        if self.gated:
            gate, x = x.chunk(2, dim=-1)
            return self.out(F.silu(gate) * x)
        return self.out(self.bend(x))


def gelu(x: Tensor) -> Tensor:
    """GELU, tanh form (Hendrycks & Gimpel 2016, section 2)."""
    if x.device.type == "cpu" and torch.is_grad_enabled():
        return _GELU.apply(x)
    return F.gelu(x, approximate="tanh")


class _GELU(torch.autograd.Function):
    """x * sigmoid(2 u), which is x * (1 + tanh(u)) / 2: on a CPU, sigmoid is several times faster than tanh."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        a = 2 * math.sqrt(2 / math.pi)
        return torch.addcmul(x.new_tensor(a), x, x, value=0.044715 * a).mul_(x).sigmoid_().mul_(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return torch.ops.aten.gelu_backward(gradient, *ctx.saved_tensors, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": gelu, "gelu_exact": F.gelu, "relu": F.relu}


class Block(nn.Module):
    def __init__(
        self, attention: SelfAttention, feed: FeedForward, norms: tuple[nn.Module, nn.Module], pre: bool, dropout: float
    ) -> None:
        super().__init__()
        self.attention, self.feed, self.pre = attention, feed, pre
        self.norm_1, self.norm_2 = norms
        self.dropout, self.output = Dropout(dropout), Tap()

    def forward(
        self, x: Tensor, cache: Cache, layer: int, views: list[View], angles: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        if self.pre:
            x = x + self.dropout(self.attention(self.norm_1(x), cache, layer, views, angles))
            return self.output(x + self.dropout(self.feed(self.norm_2(x))))
        x = self.norm_1(x + self.dropout(self.attention(x, cache, layer, views, angles)))
        return self.output(self.norm_2(x + self.dropout(self.feed(x))))


class EncoderBlock(nn.Module):
    """A bidirectional block: every position attends to all non-padding positions."""

    def __init__(
        self, width: int, heads: int, feed: int, pre: bool, bend: str, bias: bool, dropout: float, eps: float = 1e-5
    ) -> None:
        """`feed`: hidden size of the feed-forward network; 0: 4 x width."""
        super().__init__()
        self.pre = pre
        self.attention = SourceAttention(width, heads, bias)
        self.feed = FeedForward(width, feed or 4 * width, gated=False, bias=bias, bend=bend)
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.dropout, self.output = Dropout(dropout), Tap()

    def forward(self, x: Tensor, visible: Tensor | None) -> Tensor:
        if self.pre:
            x = x + self.dropout(self._attend(self.norm_1(x), visible))
            return self.output(x + self.dropout(self.feed(self.norm_2(x))))
        x = self.norm_1(x + self.dropout(self._attend(x, visible)))
        return self.output(self.norm_2(x + self.dropout(self.feed(x))))

    def _attend(self, x: Tensor, visible: Tensor | None) -> Tensor:
        return self.attention(x, *self.attention.read(x), visible)


def xavier(module: nn.Module) -> None:
    """Xavier-initialise every linear layer, each matrix of a stacked weight separately, as torch.nn.Transformer does;
    biases start at zero."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            blocks = getattr(part.weight, "blocks", 1)
            rows = blocks if isinstance(blocks, list) else [part.out_features // blocks] * blocks
            for matrix in part.weight.data.split(rows):
                nn.init.xavier_uniform_(matrix)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
