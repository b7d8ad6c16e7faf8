"""Backbone: an architecture, (B, T, inputs) -> (B, T, width), with one invariant:

processing a sequence in chunks, passing the state along, gives exactly the same output as processing it at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.slots import Slots
from seqloom.core.state import State
from seqloom.core.taps import Tap

Kind = Literal["causal", "bidirectional", "encoder-decoder"]


def stack_of(matrices: int | list[int], weight: Tensor) -> None:
    """Mark a weight as several matrices stacked by rows, for optimisers that treat each one separately.

    `matrices`: the number of equal blocks, or the number of rows in each block.
    """
    weight.blocks = matrices  # type: ignore[attr-defined]


def matrix_flops(module: nn.Module) -> float:
    """Floating-point operations per token in the module's matrix products: two per weight.

    Embedding look-ups are free; element-wise operations are negligible and not counted.
    """
    parts = [part for part in module.modules() if not isinstance(part, nn.Embedding)]
    return 2.0 * sum(p.numel() for part in parts for p in part.parameters(recurse=False) if p.dim() == 2)


def at_end(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The vector at each row's last real position, (B, T, ...) -> (B, ...); the first one if all is padding."""
    if mask is None:
        return hidden[:, -1]
    return hidden[torch.arange(len(hidden), device=hidden.device), (mask.sum(1) - 1).clamp(min=0)]


class Backbone(nn.Module, ABC):
    kind: Kind = "causal"
    width: int
    inputs: int | None = None  # size of the input vectors; None: same as width
    limit: int | None = None  # maximum context in tokens; None: unlimited, the state has a fixed size
    reach: int | None = None  # longest sequence it can process at all, in tokens; None: any length
    slots = Slots()  # how rows of its state come and go

    @abstractmethod
    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Per-position output and the new state, continuing from `state` (None: start of sequence)."""

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Per-position output for a complete sequence, (B, T, width)."""
        found: Tensor = self(x, None, mask)[0]
        return found

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The final vector (B, width), for callers that need no per-position output."""
        return at_end(self.encode(x, mask), mask)

    def only_encode(self) -> None:
        """Drop everything `encode` does not use, so that untrained weights are not counted as parameters."""

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        """Process a context and return the state to continue from."""
        found: State = self(context, None, mask)[1]
        return found

    def stages(self) -> list[nn.Module]:
        """The layers, from input to output."""
        return []

    def layer_taps(self) -> list[Tap]:
        """Where the output (B, T, width) of each layer passes, from input to output; in an encoder-decoder those of the
        decoder."""
        return []

    def encoder_taps(self) -> list[Tap]:
        """The same of an encoder-decoder's encoder."""
        return []

    def memory_taps(self) -> list[list[Tap]]:
        """Per layer, where its recurrent memory passes at every step; what is put in there is what the next step reads.
        Empty, or empty for a layer: the memory is not one vector per step."""
        return []

    def finish(self, hidden: Tensor) -> Tensor:
        """From the last layer's output to that of the backbone: a final norm, if there is one."""
        return hidden

    def flops(self, length: int) -> float:
        """Floating-point operations per token in a forward pass over sequences of `length` tokens."""
        return matrix_flops(self)
