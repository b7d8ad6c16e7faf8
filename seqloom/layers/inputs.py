"""What enters a backbone when tokens come in parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PartedEmbedding(nn.Embedding):
    """Vectors of tokens, and of the part they stand in (Devlin et al. 2019): up to the first mark, or after it."""

    def __init__(self, size: int, width: int, mark: int) -> None:
        super().__init__(size, width)
        self.mark = mark
        self.parts = nn.Embedding(2, width)

    def forward(self, inputs: Tensor) -> Tensor:
        marks = (inputs == self.mark).int()
        after = (marks.cumsum(1) - marks > 0).long()
        return super().forward(inputs) + self.parts(after)


class MatchedEmbedding(PartedEmbedding):
    """The same, and for each token after the first mark whether it stands before it too (Chen et al. 2017, DrQA):
    not at all, alone, or together with the token beside it."""

    keys: Tensor

    def __init__(self, size: int, width: int, mark: int, keys: Sequence[int]) -> None:
        """`keys`: for each token a number that it shares with what counts as the same; 0: it never counts."""
        super().__init__(size, width, mark)
        self.match = nn.Embedding(3, width)
        self.register_buffer("keys", torch.tensor(keys), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + self.match(self.matches(inputs))

    def matches(self, inputs: Tensor) -> Tensor:
        """0, 1 or 2 for each position, (B, T)."""
        marks = (inputs == self.mark).int()
        before = marks.cumsum(1) == 0  # the first mark itself is neither asked nor read
        after = marks.cumsum(1) - marks > 0
        longest = int(before.sum(1).max())
        keys = self.keys[inputs]
        asked = (keys * before)[:, None, :longest]
        same = (keys[:, :, None] == asked) & (asked != 0)  # (B, T, Q)
        pair = same[:, :-1, :-1] & same[:, 1:, 1:]
        alone, together = same.any(2), pair.any(2) if longest > 1 else pair.new_zeros(pair.shape[:2])
        side = F.pad(together, (0, 1)) | F.pad(together, (1, 0))
        return (alone.long() + side) * after
