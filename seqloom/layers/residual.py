"""A residual stack: blocks of a short convolution, a causal sequence mixer and a feed-forward network.

x = x + convolve(norm(x)),  x = x + mixer(norm(x)),  x = x + feed(norm(x))

state = (tokens read (B,), (last kernel-1 inputs of the convolution, the mixer's memory) per block)

The short causal convolution gives local context to a mixer that addresses its memory by content.
Facts about the tokens of a call (positions, padding) are computed once and shared by all mixers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.layers.convolution import convolve
from seqloom.layers.dropout import Dropout
from seqloom.layers.norms import RMSNorm
from seqloom.layers.stack import StackConfig, outputs, start_small
from seqloom.layers.transformer import FeedForward


class Mixer(nn.Module, ABC):
    """(B, T, width) -> (B, T, width) and the updated memory; None: empty. Its last linear layer is named `out`."""

    @abstractmethod
    def forward(self, x: Tensor, memory: State, tokens: Any) -> tuple[Tensor, State]: ...

    @abstractmethod
    def flops(self, length: int) -> float:
        """Per token, beyond the products with weight matrices."""

    def held(self) -> list[Tap]:
        """Where its memory passes at every step, in the order of the step; empty: it is not a vector."""
        return []


class ResidualConfig(StackConfig):
    """Options shared by all residual-stack architectures."""

    heads: int = Field(4, ge=1, description="heads of size width / heads, each with its own memory")
    kernel: int = Field(
        4, ge=1, le=4096, description="kernel size of the causal convolution in each block; 1: no convolution"
    )
    feed: int = Field(0, ge=0, description="hidden size of the gated feed-forward; 0: 8/3 x width")

    @property
    def block_kernel(self) -> int:
        """Kernel size of the convolution before each mixer; 1: none."""
        return self.kernel

    @property
    def block_feed(self) -> int:
        """Hidden size of the feed-forward after each mixer; 0: none."""
        return self.feed or 8 * math.ceil(self.width / 3)


class Block(nn.Module):
    def __init__(self, mixer: Mixer, config: ResidualConfig) -> None:
        super().__init__()
        width, kernel, hidden = config.width, config.block_kernel, config.block_feed
        self.mixer = mixer
        self.feed = FeedForward(width, hidden, gated=True, bias=False) if hidden else None
        self.norm_1, self.norm_2 = RMSNorm(width), RMSNorm(width) if hidden else None
        self.dropout, self.output = Dropout(config.dropout), Tap()
        self.near: nn.Parameter | None = None
        if kernel > 1:
            self.near, self.norm_0 = nn.Parameter(torch.zeros(kernel, 1, width)), RMSNorm(width)

    def forward(self, x: Tensor, memory: State, tokens: Any, mask: Tensor | None) -> tuple[Tensor, State]:
        past: Any = memory or (None, None)
        recent, remembered = past
        if self.near is not None:
            recent = x.new_zeros(x.size(0), len(self.near) - 1, x.size(2)) if recent is None else recent
            read = torch.cat((recent, self.norm_0(x)), dim=1)  # (B, kernel-1+T, width)
            recent = keep_last(read, len(self.near) - 1, mask)
            x = x + self.dropout(convolve(read, self.near))
        mixed, remembered = self.mixer(self.norm_1(x), remembered, tokens)
        x = x + self.dropout(mixed)
        if self.feed is not None and self.norm_2 is not None:
            x = x + self.dropout(self.feed(self.norm_2(x)))
        return self.output(x), (recent, remembered)


class ResidualStack(Backbone):
    def __init__(self, config: ResidualConfig, mixer: Callable[[], Mixer]) -> None:
        super().__init__()
        self.width = config.width
        self.blocks = nn.ModuleList(Block(mixer(), config) for _ in range(config.depth))
        self.norm, self.dropout = RMSNorm(config.width), Dropout(config.dropout)
        start_small(self)
        for weight in outputs(self):  # every residual branch starts at zero
            nn.init.zeros_(weight)

    def look(self, x: Tensor, read: Tensor, mask: Tensor | None) -> Any:
        """What the mixers need to know about the new tokens; `read` counts the tokens each row has read so far."""
        return mask

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if not x.size(1):
            return x, state
        past: Any = state or (torch.zeros(x.size(0), dtype=torch.long), [None] * len(self.blocks))
        read, memories = past
        tokens, after = self.look(x, read, mask), []
        x = self.dropout(x)
        for block, memory in zip(self.blocks, memories, strict=True):
            x, memory = block(x, memory, tokens, mask)
            after.append(memory)
        added = x.size(1) if mask is None else mask.sum(1).cpu()
        return self.finish(x), (read + added, tuple(after))

    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def layer_taps(self) -> list[Tap]:
        blocks: Any = self.blocks
        return [block.output for block in blocks]

    def memory_taps(self) -> list[list[Tap]]:
        blocks: Any = self.blocks
        found = [block.mixer.held() for block in blocks]
        return found if any(found) else []

    def finish(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.norm(hidden)
        return found

    def flops(self, length: int) -> float:
        mixers: list[Any] = [block.mixer for block in self.blocks]
        return super().flops(length) + sum(mixer.flops(length) for mixer in mixers)
