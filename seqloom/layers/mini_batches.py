"""Mini-batches: split the new tokens of every row into groups of `size`, counted from the start of the row.

Rows may be at different places in their mini-batch when new tokens arrive, and may end in padding. A row that has read
s tokens of an unfinished mini-batch puts its n-th new token into slot s + n, so that boundaries fall at the same slots
in all rows. Slots without a token hold zeros.

B rows, T new tokens, H heads, D values; M mini-batches of K slots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class MiniBatches:
    """The tokens of one call. Counters stay on the CPU, so that reading them does not synchronise with the GPU."""

    def __init__(self, x: Tensor, read: Tensor, mask: Tensor | None, size: int) -> None:
        rows, self.steps = x.shape[:2]
        self.mask, self.device = mask, x.device
        self.starts = [n % size for n in read.tolist()]
        added = [self.steps] * rows if mask is None else mask.sum(1).tolist()
        self.fresh = not any(self.starts)  # every row starts a new mini-batch
        self.single = self.steps == 1  # needs only its own slot
        slots = 1 if self.single else max(self.starts) + self.steps
        self.length = min(size, slots)  # a partial mini-batch has only the slots it uses
        self.count = -(-slots // self.length)
        whole = [(start + n) // size for start, n in zip(self.starts, added, strict=True)]
        self.ends = [[n < count for count in whole] for n in range(self.count)]  # rows that complete the n-th
        self.aligned = self.single or (self.fresh and slots == self.count * self.length)

    def places(self) -> Tensor:
        """Positions within the mini-batch: of its slots (K,); of a single token (1,), or (B, 1) where rows differ."""
        if not self.single:
            return torch.arange(self.length, device=self.device)
        if len(set(self.starts)) == 1:
            return torch.tensor(self.starts[:1], device=self.device)
        return torch.tensor(self.starts, device=self.device)[:, None]

    def split(self, x: Tensor, heads: int) -> Tensor:
        """(B, T, H * D) -> (M, B, H, K, D)"""
        if not self.aligned:
            slot = torch.arange(self.count * self.length) - torch.tensor(self.starts)[:, None]
            token = torch.where((slot >= 0) & (slot < self.steps), slot, self.steps)
            x = _pick(F.pad(x, (0, 0, 0, 1)), token)  # index self.steps is the zero vector
        x = x.view(x.size(0), self.count, self.length, heads, -1)
        return x.permute(1, 0, 3, 2, 4).contiguous()

    def merge(self, x: Tensor) -> Tensor:
        """(M, B, H, K, D) -> (B, T, H * D)"""
        x = x.permute(1, 0, 3, 2, 4).reshape(x.size(1), self.count * self.length, -1)
        if self.aligned:
            return x
        return _pick(x, torch.tensor(self.starts)[:, None] + torch.arange(self.steps))


def _pick(x: Tensor, token: Tensor) -> Tensor:
    return x.gather(1, token.to(x.device)[..., None].expand(-1, -1, x.size(-1)))
