"""Window: an autoregressive model of the last `span` vectors, a perceptron (Bengio et al. 2003) or one linear map.

state = the last span-1 input vectors (B, span-1, inputs), zeros before the beginning
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone
from seqloom.core.linear import Linear
from seqloom.core.network import ModelConfig
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.norms import RMSNorm


class Config(ModelConfig):
    width: int = Field(64, ge=1, description="size of every vector in the window, and of what leaves")
    inputs: int = Field(0, ge=0, description="size of the vectors in the window, if it is another; 0: the width")
    span: int = Field(16, ge=1, description="tokens looked at: the current one and those just before it")
    form: Literal["mlp", "linear"] = Field("mlp", description="mlp, or one linear map of the window and nothing else")
    hidden: int = Field(512, ge=1, description="size of the hidden layers (mlp)")
    depth: int = Field(2, ge=1, description="hidden layers (mlp); each after the first adds to the one before")

    knobs: ClassVar[tuple[str, ...]] = ("hidden", "width")
    variants: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"form": "linear"},
        {"span": 1, "depth": 1},
        {"form": "linear", "inputs": 3},
        {"inputs": 5},
    )

    def build(self) -> Backbone:
        reader: nn.Module
        inputs = self.inputs or self.width
        if self.form == "linear":
            reader = Linear(self.span * inputs, self.width)
        else:
            reader = Perceptron(self.span, inputs, self.width, self.hidden, self.depth, self.dropout)
        return Window(inputs, self.width, self.span, reader)


class Window(Backbone):
    def __init__(self, inputs: int, width: int, span: int, reader: nn.Module) -> None:
        super().__init__()
        self.inputs, self.width, self.span, self.reader = inputs, width, span, reader

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if state is None:
            state = x.new_zeros(x.size(0), self.span - 1, x.size(-1))
        assert isinstance(state, Tensor)
        if not x.size(1):  # no window to unfold
            return x.new_zeros(x.size(0), 0, self.width), state
        read = torch.cat([state, x], dim=1)  # (B, span-1+T, inputs)
        # On a CPU, copying the windows for one large product costs what a convolution does, and less for a single step.
        windows = read.unfold(1, self.span, 1).transpose(2, 3).flatten(2)  # (B, T, span * inputs), oldest first
        return self.reader(windows), keep_last(read, self.span - 1, mask)

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One window of each row, the last."""
        read = torch.cat([x.new_zeros(x.size(0), self.span, x.size(-1)), x], dim=1)
        return self.reader(keep_last(read, self.span, mask).flatten(1))


class Perceptron(nn.Module):
    """Hidden layers over a window; what they find is added to the window's newest vector."""

    def __init__(self, span: int, inputs: int, width: int, hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.inputs = inputs
        self.newest = Linear(inputs, width) if inputs != width else nn.Identity()
        self.first = Linear(span * inputs, hidden)
        self.hidden = nn.ModuleList(Hidden(hidden, dropout) for _ in range(depth))
        self.maps = nn.ModuleList(Linear(hidden, hidden) for _ in range(depth - 1))
        self.last = Linear(hidden, width)
        self.norm = RMSNorm(width)
        for layer in (*self.maps, self.last):  # what adds starts at zero: at first a model of the newest vector alone
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.first.bias)  # else it drowns small embeddings, for the norm after it sees only directions
        self._prefer_near(span)

    def forward(self, windows: Tensor) -> Tensor:
        h = self.first(windows)
        for hidden, layer in zip(self.hidden, self.maps, strict=False):
            h = h + layer(hidden(h))
        return self.norm(self.newest(windows[..., -self.inputs :]) + self.last(self.hidden[-1](h)))

    @torch.no_grad()
    def _prefer_near(self, span: int) -> None:
        """Begin with weights that shrink as 1/distance: the near past says most, and learning starts from there."""
        near = 1 / torch.arange(span, 0, -1)
        near = near / near.square().mean().sqrt()
        self.first.weight.mul_(near.repeat_interleave(self.inputs))


class Hidden(nn.Module):
    """Normalise, then the squared ReLU (So et al. 2021)."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.values, self.drop = RMSNorm(size), Tap(), Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        return self.drop(self.values(F.relu(self.norm(h)).square()))
