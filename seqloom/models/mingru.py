"""minGRU (Feng et al. 2024): a GRU whose gate depends only on the input, so that all steps train in parallel.

z_t = sigmoid(W_z x_t),  h_t = (1 - z_t) * h_{t-1} + z_t * W_c x_t        state = (h, last kernel-1 inputs) per layer

As in the paper's language models, the cell is part of a residual block, with a short causal convolution before it and
a feed-forward network after it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, stack_of
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.layers.convolution import convolve
from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear
from seqloom.layers.scan import scan
from seqloom.layers.transformer import FeedForward

QUICKEST, SLOWEST = 1.5, 64.0  # initial time constants of the memory, in steps

Memory = tuple[Tensor, Tensor]  # h (B, H), and the last kernel-1 inputs (B, kernel-1, width)


class ParallelCell(nn.Module, ABC):
    """A memory that is a running average, h_t = (1 - z_t) * h_{t-1} + z_t * c_t; z and c do not depend on h."""

    signs: ClassVar[tuple[int, ...]]  # per block of H rows in the weight: 1 opens z, -1 closes it, 0 is c
    carries: ClassVar[tuple[str, str]] = ("added", "state")  # what is added to h also has the gradient of h

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.into = Linear(inputs, len(self.signs) * hidden)
        stack_of(len(self.signs), self.into.weight)
        self.added, self.state = Tap(), Tap()  # z_t * c_t and h_t, (B, T, H)
        self._spread_time_constants()

    @abstractmethod
    def gate(self, parts: Sequence[Tensor]) -> Tensor:
        """z, from the blocks other than c."""

    def forward(self, x: Tensor, h: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, inputs) -> (B, T, H)"""
        z, c = self._split(self.into(x), h)
        if mask is not None:
            z = z * mask[..., None]  # padding leaves h unchanged
        added = self.added(z * c)
        if self.state.edited:
            return self._replaced(1 - z, added, h)
        return self.state(scan(1 - z, added, h))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        """(B, inputs) -> (B, H)"""
        z, c = self._split(self.into(x), h)
        return torch.lerp(h, c, z)

    def _replaced(self, keep: Tensor, write: Tensor, h: Tensor) -> Tensor:
        """One step after the other: what takes the place of a state is what the next step starts from."""
        states = [h[:, None][:, :0]]
        for a, b in zip(keep.unbind(1), write.unbind(1), strict=True):
            states.append(self.state((a * h + b)[:, None]))
            h = states[-1][:, 0]
        return torch.cat(states, dim=1)

    def _split(self, projected: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        # Autocast may run the product in low precision; the memory keeps the dtype of the weights.
        *parts, c = projected.to(h.dtype).chunk(len(self.signs), dim=-1)
        return self.gate(parts), c

    @torch.no_grad()
    def _spread_time_constants(self) -> None:
        """Initial time constants are spaced evenly on a logarithmic scale, from QUICKEST to SLOWEST."""
        steps = torch.logspace(math.log10(QUICKEST), math.log10(SLOWEST), self.hidden)
        self.into.bias.copy_(torch.cat([sign * (1 / steps).logit() for sign in self.signs]))


class MinGRUCell(ParallelCell):
    signs = (1, 0)
    flow: ClassVar[dict[str, str]] = {"update_gate": "writes"}

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.update_gate = Tap()

    def gate(self, parts: Sequence[Tensor]) -> Tensor:
        return self.update_gate(parts[0].sigmoid())


class Block(nn.Module):
    """Convolution and cell, then a gated feed-forward network; both are residual branches that start at zero."""

    def __init__(self, cell: ParallelCell, width: int, feed: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.near = nn.Parameter(torch.zeros(kernel, 1, width))
        self.cell, self.out = cell, Linear(cell.hidden, width, bias=False)
        self.feed = FeedForward(width, feed, gated=True, bias=False)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout, self.output = Dropout(dropout), Tap()
        nn.init.ones_(self.near.data[-1])  # initially the identity: only the current input
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.feed.out.weight)

    def forward(self, x: Tensor, memory: Memory | None, mask: Tensor | None) -> tuple[Tensor, Memory]:
        h, recent = memory or self._start(x.size(0))
        read = torch.cat((recent, self.norm_1(x)), dim=1)  # (B, kernel-1+T, width)
        hs = self.cell(convolve(read, self.near), h, mask)
        x = x + self.dropout(self.out(hs))
        x = self.output(x + self.dropout(self.feed(self.norm_2(x))))
        return x, (hs[:, -1].clone() if hs.size(1) else h, keep_last(read, recent.size(1), mask))

    def step(self, x: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        """The same for one token, (B, width) -> (B, width)."""
        h, recent = memory or self._start(x.size(0))
        read = torch.cat((recent, self.norm_1(x)[:, None]), dim=1)
        h = self.cell.step((read * self.near[:, 0]).sum(1), h)
        x = x + self.out(h)
        return x + self.feed(self.norm_2(x)), (h, read[:, 1:])

    def _start(self, rows: int) -> Memory:
        kernel, _, width = self.near.shape
        return self.near.new_zeros(rows, self.cell.hidden), self.near.new_zeros(rows, kernel - 1, width)


class Parallel(Backbone):
    """A stack of blocks and a final norm."""

    def __init__(self, width: int, blocks: Sequence[Block], dropout: float) -> None:
        super().__init__()
        self.width, self.blocks, self.norm = width, nn.ModuleList(blocks), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.taps = [module for module in self.modules() if isinstance(module, Tap)]

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        blocks: Any = self.blocks
        past: Any = state or [None] * len(blocks)
        memories: list[Memory] = []
        if x.size(1) == 1 and mask is None and not self._learning_or_watched():
            x = x[:, 0]
            for block, memory in zip(blocks, past, strict=True):
                x, memory = block.step(x, memory)
                memories.append(memory)
            return self.norm(x)[:, None], tuple(memories)
        x = self.dropout(x)
        for block, memory in zip(blocks, past, strict=True):
            x, memory = block(x, memory, mask)
            memories.append(memory)
        return self.finish(x), tuple(memories)

    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def layer_taps(self) -> list[Tap]:
        blocks: Any = self.blocks
        return [block.output for block in blocks]

    def memory_taps(self) -> list[list[Tap]]:
        blocks: Any = self.blocks
        return [[block.cell.state] for block in blocks]

    def finish(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.norm(hidden)
        return found

    def _learning_or_watched(self) -> bool:
        return self.training or torch.is_grad_enabled() or any(tap.watched for tap in self.taps)


class Config(ModelConfig):
    width: int = Field(192, ge=1, description="size of the vectors between blocks")
    depth: int = Field(2, ge=1, le=128, description="number of blocks")
    hidden: int = Field(0, ge=0, description="size of each block's recurrent state; 0: 3/2 x width")
    feed: int = Field(0, ge=0, description="hidden size of the gated feed-forward; 0: 2 x width")
    kernel: int = Field(4, ge=1, le=4096, description="kernel size of the causal convolution; 1: current input only")

    defaults: ClassVar[Json] = {"task.length": 64}
    knobs: ClassVar[tuple[str, ...]] = ("width", "feed")
    variants: ClassVar[tuple[Json, ...]] = ({}, {"depth": 1, "kernel": 1}, {"hidden": 5, "feed": 7})
    cell: ClassVar[type[ParallelCell]] = MinGRUCell

    def build(self) -> Backbone:
        hidden, feed = self.hidden or math.ceil(1.5 * self.width), self.feed or 2 * self.width
        cells = [self.cell(self.width, hidden) for _ in range(self.depth)]
        blocks = [Block(cell, self.width, feed, self.kernel, self.dropout) for cell in cells]
        return Parallel(self.width, blocks, self.dropout)
