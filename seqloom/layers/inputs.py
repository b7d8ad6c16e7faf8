"""What enters a backbone when tokens come in parts."""

from __future__ import annotations

from torch import Tensor, nn


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
