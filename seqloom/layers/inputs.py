"""Embeddings for inputs in two segments, separated by a special token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PartedEmbedding(nn.Embedding):
    """Token plus segment embeddings (Devlin et al. 2019): up to and including the first separator, or after it.

    `mark` is the id of the separator.
    """

    def __init__(self, size: int, width: int, mark: int) -> None:
        super().__init__(size, width)
        self.mark = mark
        self.parts = nn.Embedding(2, width)

    def forward(self, inputs: Tensor) -> Tensor:
        separators = self.separators(inputs)
        after = (separators.cumsum(1) - separators > 0).long()
        return super().forward(inputs) + self.parts(after)

    def separators(self, inputs: Tensor) -> Tensor:
        """1 at every separator. The first token begins the sequence, even if its id is that of a separator."""
        found = (inputs == self.mark).int()
        found[:, :1] = 0
        return found


class MatchedEmbedding(PartedEmbedding):
    """Adds an exact-match feature (Chen et al. 2017, DrQA) to tokens after the first separator: whether they also occur
    before it. No match, a match, or a match together with an adjacent token."""

    keys: Tensor

    def __init__(self, size: int, width: int, mark: int, keys: Sequence[int]) -> None:
        """`keys`: one number per token id, equal for tokens that count as the same; 0: never matches."""
        super().__init__(size, width, mark)
        self.match = nn.Embedding(3, width)
        self.register_buffer("keys", torch.tensor(keys), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + self.match(self.matches(inputs))

    def matches(self, inputs: Tensor) -> Tensor:
        """0, 1 or 2 for each position, (B, T)."""
        separators = self.separators(inputs)
        before = separators.cumsum(1) == 0  # the first separator belongs to neither side
        after = separators.cumsum(1) - separators > 0
        longest = int(before.sum(1).max())
        keys = self.keys[inputs]
        first = (keys * before)[:, None, :longest]
        same = (keys[:, :, None] == first) & (first != 0)  # (B, T, Q)
        pair = same[:, :-1, :-1] & same[:, 1:, 1:]
        single, double = same.any(2), pair.any(2) if longest > 1 else pair.new_zeros(pair.shape[:2])
        adjacent = F.pad(double, (0, 1)) | F.pad(double, (1, 0))
        return (single.long() + adjacent) * after
