"""Backbone: an architecture, (B, T, inputs) -> (B, T, width), and the one law it must keep:

reading a sequence in pieces, handing the state on, gives exactly what reading it at once gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.state import State

Kind = Literal["causal", "bidirectional", "encoder-decoder"]


def stack_of(matrices: int | list[int], weight: Tensor) -> None:
    """Say that a weight is several matrices on top of each other, for optimisers that treat each by itself.

    So many alike, or with so many rows each.
    """
    weight.blocks = matrices  # type: ignore[attr-defined]


def matrix_flops(module: nn.Module) -> float:
    """Floating-point operations per token of its matrices, each multiplied once: two per weight.

    Tables are looked up, which is free; what is done value by value is little and not counted.
    """
    parts = [part for part in module.modules() if not isinstance(part, nn.Embedding)]
    return 2.0 * sum(p.numel() for part in parts for p in part.parameters(recurse=False) if p.dim() == 2)


def at_end(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """What stands at each row's last real step, (B, T, ...) -> (B, ...); of nothing but padding, at its first."""
    if mask is None:
        return hidden[:, -1]
    return hidden[torch.arange(len(hidden), device=hidden.device), (mask.sum(1) - 1).clamp(min=0)]


class Backbone(nn.Module, ABC):
    kind: Kind = "causal"
    width: int
    inputs: int | None = None  # size of the vectors it reads; None: the width
    limit: int | None = None  # most tokens it should read in one go; None: its state never grows, read on for ever
    reach: int | None = None  # most tokens it can read at all; None: no end

    @abstractmethod
    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Continue from a state (None: from the beginning)."""

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """See the sequence whole."""
        found: Tensor = self(x, None, mask)[0]
        return found

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One vector (B, width) when all has been read: for who asks nothing else."""
        return at_end(self.encode(x, mask), mask)

    def only_encode(self) -> None:
        """Let go of all that `encode` does not need: weights that never learn should not count."""

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        """Read a context; the state from which to continue."""
        found: State = self(context, None, mask)[1]
        return found

    def stages(self) -> list[nn.Module]:
        """Its layers, from the input to the output."""
        return []

    def flops(self, length: int) -> float:
        """Floating-point operations per token, forward, when sequences of `length` tokens are read."""
        return matrix_flops(self)
