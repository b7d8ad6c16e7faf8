"""Batch: what a task hands to a model. Masks are True where a position is real; padding is on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

IGNORE = -100  # a target that is excluded from the loss
Keep = Literal["start", "end", "both"]


@dataclass
class Batch:
    inputs: Tensor  # (B, T) ids, or (B, T, F) measurements
    mask: Tensor | None  # (B, T); None when every position is real
    targets: Tensor  # shaped by the task; IGNORE where nothing is asked
    context: Tensor | None = None  # (B, S) what to read first: a source sentence, a prompt
    context_mask: Tensor | None = None
    continues: bool = False  # row by row, this batch follows the previous one
    origin: str = ""  # where the rows come from, for error messages

    def to(self, device: torch.device) -> Self:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) for k, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def pad(rows: Sequence[Sequence[int] | np.ndarray | Tensor], value: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of unequal length as one (B, T) tensor and its mask."""
    tensors = [torch.as_tensor(row) for row in rows]
    lengths = torch.tensor([len(t) for t in tensors])
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)
    return padded, torch.arange(padded.size(1))[None] < lengths[:, None]


def cut(row: np.ndarray, most: int, keep: Keep) -> np.ndarray:
    """At most `most` steps of a row: its start, its end, or half of each (both)."""
    if len(row) <= most:
        return row
    first = {"start": most, "end": 0, "both": (most + 1) // 2}[keep]
    return np.concatenate((row[:first], row[len(row) - (most - first) :]))
