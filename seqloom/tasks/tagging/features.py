"""Words as vectors: from a table, and from the letters they are spelled with, so that unknown words say something too.

convolution  a window of three letters slides over the word; of each feature the largest value (Ma & Hovy 2016)
lstm         read from both ends; the two last memories (Lample et al. 2016)

Inputs are (B, T, 1 + C) ids: of the word, then of its letters, padded with 0. A word that stands in a batch several
times is read once.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear

Reading = Literal["convolution", "lstm"]
_WINDOW = 3
_LENGTHS = (4, 8)  # letters: up to so many, up to so many, and more
_FACTOR = 0x5851F42D4C957F2D


class SpelledEmbedding(nn.Embedding):
    """(B, T, 1 + C) -> (B, T, width); `words` and `letters`: sizes of the tables."""

    def __init__(
        self, words: int, letters: int, width: int, reading: Reading, features: int = 50, dropout: float = 0.0
    ) -> None:
        super().__init__(words, width)
        self.letters = nn.Embedding(letters, max(1, features // 2))
        kinds: dict[str, type[_Convolution] | type[_BiLSTM]] = {"convolution": _Convolution, "lstm": _BiLSTM}
        self.read = kinds[reading](self.letters.embedding_dim, features)
        self.dropout = Dropout(dropout)
        self.join = Linear(width + self.read.features, width)

    def forward(self, inputs: Tensor) -> Tensor:
        spelled, places = distinct(inputs[..., 1:].flatten(0, 1))
        word = super().forward(inputs[..., 0])
        features = self._by_length(spelled)[places].view(*word.shape[:2], -1)
        found: Tensor = self.join(self.dropout(torch.cat((word, features.to(word.dtype)), -1)))
        return found

    def _by_length(self, spelled: Tensor) -> Tensor:
        """Words of like length are read together: most are short, and few letters of a group are padding."""
        lengths = (spelled != 0).sum(1)
        order = lengths.argsort(stable=True)
        bounds = [bound for bound in _LENGTHS if bound < spelled.size(1)] + [spelled.size(1)]
        upper = torch.tensor(bounds, device=lengths.device)
        ends = torch.searchsorted(lengths[order], upper, right=True).tolist()
        groups = zip([0, *ends], ends, bounds, strict=False)
        read = [self._read(spelled[order[begin:end], :longest]) for begin, end, longest in groups if end > begin]
        return torch.cat(read)[order.argsort()]

    def _read(self, spelled: Tensor) -> Tensor:
        real = spelled != 0
        letters = self.letters(spelled) * real[..., None]  # what is beside a word is nothing
        found: Tensor = self.read(letters, real) * real[:, :1]
        return found


def distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of (N, C) ids that differ, and for each row its place among them.

    Sorting whole rows is slow: a number made from each is sorted instead. Should two rows have the same number, which
    is seen, the slow way is taken.
    """
    factors = _FACTOR ** torch.arange(1, rows.size(1) + 1, device=rows.device)  # wraps around, which does no harm
    numbers, places = (rows * factors).sum(1).unique(return_inverse=True)
    one = torch.zeros_like(numbers).scatter_(0, places, torch.arange(len(rows), device=rows.device))
    if bool((rows[one][places] == rows).all()):
        return rows[one], places
    found: tuple[Tensor, Tensor] = torch.unique(rows, dim=0, return_inverse=True)
    return found


class _Convolution(nn.Module):
    def __init__(self, inputs: int, features: int) -> None:
        super().__init__()
        self.features = features
        self.filter = nn.Conv1d(inputs, features, _WINDOW, padding=_WINDOW // 2)

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """(N, C, inputs) -> (N, features)"""
        seen = self.filter(letters.transpose(1, 2))  # (N, features, C)
        found: Tensor = seen.masked_fill(~real[:, None], -math.inf).max(2)[0].relu()
        return found


class _BiLSTM(nn.Module):
    def __init__(self, inputs: int, features: int) -> None:
        super().__init__()
        self.features = 2 * max(1, features // 2)
        self.forth = nn.LSTM(inputs, self.features // 2, batch_first=True)
        self.back = nn.LSTM(inputs, self.features // 2, batch_first=True)

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        last = real.sum(1)
        place = torch.arange(letters.size(1), device=letters.device)
        mirrored = (last[:, None] - 1 - place).clamp(min=0)  # padding reads the first letter again, after the end
        reverse = letters.gather(1, mirrored[..., None].expand_as(letters))
        rows = torch.arange(len(letters), device=letters.device)
        ends = [read(x)[0][rows, (last - 1).clamp(min=0)] for read, x in ((self.forth, letters), (self.back, reverse))]
        return torch.cat(ends, -1)
