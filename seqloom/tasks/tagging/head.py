"""The head of a tagger: scores of all tags at each position and, with a CRF, of transitions between tags."""

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
    """Keep only words, where targets (B, T) are not IGNORE: scores (B, W, K), targets (B, W), and the mask.

    Special tokens and all but the first token of a word have no tag.
    """
    tagged = targets != IGNORE
    counts = tagged.sum(1)
    width = int(counts.max()) if len(counts) else 0
    order = tagged.int().argsort(dim=1, descending=True, stable=True)[:, :width]
    mask = torch.arange(width, device=scores.device) < counts[:, None]
    return scores.gather(1, order[..., None].expand(-1, -1, scores.size(2))), targets.gather(1, order), mask
