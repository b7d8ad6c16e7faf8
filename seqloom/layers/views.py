"""Views: which new tokens attend to which slots of the cache, split into blocks for efficiency.

A token sees itself and all tokens before it, or with a window w itself and the w - 1 before it. Scores outside the
window are mostly not computed: a long input is processed in blocks, each against only the slots its tokens can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

_BLOCK = 64  # new tokens per block; tuned for windows of 8 to 512, forward and backward


class View(NamedTuple):
    """A range of new tokens (by index) and the slots they attend to."""

    new: slice
    old: slice
    visible: Tensor | None  # (T, S) or (B, 1, T, S); None: plain causal mask; for a single token, everything


def spans(start: int, steps: int, window: int) -> Iterator[tuple[int, int, int]]:
    """(first, last, oldest slot) of each block of the new tokens, which occupy slots start ... start + steps - 1."""
    size = _BLOCK if window else max(1, steps)
    for first in range(0, max(1, steps), size):
        yield first, min(first + size, steps), max(0, start + first - window + 1) if window else 0


def even_views(start: int, steps: int, window: int, device: torch.device) -> list[View]:
    """Views for when all rows continue at the same slot."""

    @cache
    def mask(new: int, past: int) -> Tensor | None:
        plain = past == 0 and not 0 < window < new
        return None if plain or new == 1 else seen(torch.arange(past, past + new, device=device), past + new, window)

    return [
        View(slice(first, last), slice(oldest, start + last), mask(last - first, start + first - oldest))
        for first, last, oldest in spans(start, steps, window)
    ]


def seen(new: Tensor, slots: int, window: int) -> Tensor:
    """Which of the first `slots` slots are visible from the slots `new`: (..., T) -> (..., T, S)"""
    new, old = new[..., None], torch.arange(slots, device=new.device)
    return (old <= new) & (old > new - window) if window else old <= new


def pairs(length: int, window: int) -> int:
    """Scores computed when `length` tokens are read at once, including masked ones."""
    return sum((last - first) * (last - oldest) for first, last, oldest in spans(0, length, window))
