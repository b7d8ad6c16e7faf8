"""Batch: what a task passes to a model. Masks are True at real positions; padding is on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

IGNORE = -100  # target value excluded from the loss
Keep = Literal["start", "end", "both"]


@dataclass
class Batch:
    inputs: Tensor  # (B, T) token ids, or (B, T, F) measurements
    mask: Tensor | None  # (B, T); None if there is no padding
    targets: Tensor  # shape depends on the task; IGNORE: excluded from the loss
    context: Tensor | None = None  # (B, S) context read first: a source sentence, a prompt
    context_mask: Tensor | None = None
    continues: bool = False  # each row continues the same row of the previous batch
    origin: str = ""  # source of the rows, for error messages

    def to(self, device: torch.device) -> Self:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) for k, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def pad(rows: Sequence[Sequence[int] | np.ndarray | Tensor], value: int = 0) -> tuple[Tensor, Tensor]:
    """Pad rows of different lengths into one (B, T) tensor; also returns its mask. One copy, whatever the rows."""
    arrays = [np.asarray(row) for row in rows]
    lengths = np.array([len(array) for array in arrays])
    mask = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full((*mask.shape, *arrays[0].shape[1:]), value, arrays[0].dtype)
    padded[mask] = np.concatenate(arrays)
    return torch.from_numpy(padded), torch.from_numpy(mask)


def cut(row: np.ndarray, most: int, keep: Keep) -> np.ndarray:
    """Truncate a row to at most `most` steps: keep its start, its end, or half of each (both)."""
    if len(row) <= most:
        return row
    first = {"start": most, "end": 0, "both": (most + 1) // 2}[keep]
    return np.concatenate((row[:first], row[len(row) - (most - first) :]))
