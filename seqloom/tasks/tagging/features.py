"""Word embeddings combined with features of the spelling, so that unknown words are informative too.

convolution  filters over three characters, max-pooled over the word (Ma & Hovy 2016)
lstm         the final hidden states of a bidirectional LSTM (Lample et al. 2016)

Inputs are (B, T, 1 + C) ids: the word's, then its characters', padded with 0. A word that occurs several times in a
batch is encoded once.
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
_LENGTHS = (4, 8)  # words are grouped by length: up to 4 characters, up to 8, longer
_FACTOR = 0x5851F42D4C957F2D  # of the hash


class SpelledEmbedding(nn.Embedding):
    """(B, T, 1 + C) -> (B, T, width); `words` and `letters`: how many of each have an embedding."""

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
        spelled, indices = distinct(inputs[..., 1:].flatten(0, 1))
        word = super().forward(inputs[..., 0])
        features = self._by_length(spelled)[indices].view(*word.shape[:2], -1)
        found: Tensor = self.join(self.dropout(torch.cat((word, features.to(word.dtype)), -1)))
        return found

    def _by_length(self, spelled: Tensor) -> Tensor:
        """Encode words of similar length together: most are short, so this saves padding."""
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
        letters = self.letters(spelled) * real[..., None]  # zero beyond the end of a word
        found: Tensor = self.read(letters, real) * real[:, :1]
        return found


def distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of (N, C) ids, and for each row its index among them.

    Sorting whole rows is slow, so their hashes are sorted; if two rows collide, which is checked, whole rows are.
    """
    factors = _FACTOR ** torch.arange(1, rows.size(1) + 1, device=rows.device)  # overflow is harmless
    hashes, indices = (rows * factors).sum(1).unique(return_inverse=True)
    one = torch.zeros_like(hashes).scatter_(0, indices, torch.arange(len(rows), device=rows.device))
    if bool((rows[one][indices] == rows).all()):
        return rows[one], indices
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
        lengths = real.sum(1)
        position = torch.arange(letters.size(1), device=letters.device)
        mirrored = (lengths[:, None] - 1 - position).clamp(min=0)  # padding repeats the first character, after the end
        reverse = letters.gather(1, mirrored[..., None].expand_as(letters))
        rows = torch.arange(len(letters), device=letters.device)
        last = (lengths - 1).clamp(min=0)
        ends = [read(x)[0][rows, last] for read, x in ((self.forth, letters), (self.back, reverse))]
        return torch.cat(ends, -1)
