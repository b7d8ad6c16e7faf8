"""The head of a tagger: for every position a score of every tag; with a CRF, also how tags follow each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seqloom.core.batch import IGNORE
from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear
from seqloom.tasks.tagging.crf import CRF


class TagHead(nn.Module):
    def __init__(self, width: int, tags: Sequence[str], dropout: float = 0.0, crf: bool = False) -> None:
        super().__init__()
        self.dropout, self.out = Dropout(dropout), Linear(width, len(tags))
        self.crf = CRF(tags) if crf else None

    def forward(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.out(self.dropout(hidden))
        return found


def words_only(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of (B, T, K) scores those of words, which is where a target (B, T) is asked: (B, W, K), (B, W), and the mask.

    Marks at the ends of a sentence and further parts of a word have no tag.
    """
    asked = targets != IGNORE
    counts = asked.sum(1)
    width = int(counts.max()) if len(counts) else 0
    order = asked.int().argsort(dim=1, descending=True, stable=True)[:, :width]
    mask = torch.arange(width, device=scores.device) < counts[:, None]
    return scores.gather(1, order[..., None].expand(-1, -1, scores.size(2))), targets.gather(1, order), mask
