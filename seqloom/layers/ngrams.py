"""N-grams of token ids: a key for each, and TF-IDF vectors over those that the training rows contain.

Padding is on the right and an n-gram ends at its position, so padding is never part of one.
Sizes: B rows, T tokens, N the largest n, F distinct n-grams kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MOST_COUNTED = 8_000_000  # distinct n-grams counted at once; beyond this, those seen in one row only are dropped
END = torch.iinfo(torch.int64).max  # sentinel after the sorted keys: a search stays in bounds and never matches it

Rows = Iterable[tuple[Tensor, Tensor | None]]  # ids (B, T) and their mask
Ints = NDArray[np.int64]


def ngram_keys(ids: Tensor, mask: Tensor | None, vocabulary: int, shortest: int, longest: int) -> Tensor:
    """Keys (B, T, sizes) of the n-grams of `shortest` to `longest` tokens that end at each position; 0: there is none.

    A key is a numeral with one digit per token and no digit 0, so n-grams of different sizes differ as well. Beyond 64
    bits it wraps around: two n-grams then share a key by a chance that does not matter.
    """
    digits = ids + 1
    keys, found = digits, []
    for size in range(1, longest + 1):
        if size > 1:
            longer = torch.zeros_like(keys)
            before, last = keys[:, :-1], digits[:, 1:]
            longer[:, 1:] = torch.where(before == 0, 0, before * (vocabulary + 1) + last)
            keys = longer
        if size >= shortest:
            found.append(keys if mask is None else torch.where(mask, keys, 0))
    return torch.stack(found, dim=-1)


class Vectors(NamedTuple):
    """Sparse rows: those of row n are from `bounds[n]` to `bounds[n + 1]`."""

    bounds: Tensor  # (B + 1,)
    columns: Tensor
    values: Tensor

    @property
    def owners(self) -> Tensor:
        """The row of each entry."""
        return torch.repeat_interleave(self.bounds.diff())

    def times(self, weight: Tensor) -> Tensor:
        """The product with a matrix, (B, F) x (F, K) -> (B, K)."""
        found: Tensor = nn.functional.embedding_bag(
            self.columns, weight, self.bounds, per_sample_weights=self.values, mode="sum", include_last_offset=True
        )
        return found


class Growing(nn.Module):
    """A module whose own buffers take the shape of the saved ones, since it depends on the training data."""

    def set(self, name: str, values: NDArray[Any] | Tensor) -> None:
        old = getattr(self, name)
        setattr(self, name, torch.as_tensor(values).to(old.device, old.dtype))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        for name, buffer in list(self.named_buffers(recurse=False)):
            if (saved := state_dict.get(prefix + name)) is not None:
                setattr(self, name, buffer.new_empty(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


class TfIdf(Growing):
    """TF-IDF vectors of length 1 over n-grams: (1 + log count) x (1 + log((1 + rows) / (1 + rows with it))).

    Columns are the n-grams of the training rows in the order of their keys, at most `most`, the most frequent first;
    those in every row tell none apart and are left out. Others are ignored.
    """

    keys: Tensor
    idf: Tensor

    def __init__(self, vocabulary: int, longest: int, shortest: int = 1, most: int = 300_000) -> None:
        super().__init__()
        self.vocabulary, self.shortest, self.longest, self.most = vocabulary, shortest, longest, most
        self.register_buffer("keys", torch.tensor([END]))
        self.register_buffer("idf", torch.zeros(1))

    def __len__(self) -> int:
        return len(self.keys) - 1

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Vectors:
        """The vector of each row of (B, T) ids; all zeros if no n-gram is known."""
        keys = ngram_keys(ids, mask, self.vocabulary, self.shortest, self.longest).flatten(1)  # (B, T * sizes)
        place = torch.searchsorted(self.keys, keys)
        row, found = (self.keys[place] == keys).nonzero(as_tuple=True)
        size = len(self.keys)
        cells, counts = (row * size + place[row, found]).unique(return_counts=True)  # sorted by row, then column
        row, columns = cells // size, cells % size
        values = (1 + counts.to(self.idf.dtype).log()) * self.idf[columns]
        squares = values.new_zeros(len(ids)).index_add(0, row, values.square())
        bounds = torch.searchsorted(row, torch.arange(len(ids) + 1, device=ids.device))
        return Vectors(bounds, columns, values * squares.clamp(min=1e-30).rsqrt()[row])

    def count(self, rows: Rows) -> int:
        """Choose and weigh the columns; returns the number of rows."""
        known, frequencies = np.zeros(0, np.int64), np.zeros(0, np.int64)
        fresh: list[Ints] = []
        total = 0
        for ids, mask in rows:
            total += len(ids)
            fresh.append(self._distinct(ids, mask))
            if sum(map(len, fresh)) > MOST_COUNTED:
                known, frequencies = _merge(known, frequencies, fresh)
                fresh = []
        known, frequencies = _merge(known, frequencies, fresh)
        telling = frequencies < max(total, 2)
        known, frequencies = known[telling], frequencies[telling]
        kept = np.sort(np.argsort(-frequencies, kind="stable")[: self.most])
        self.set("keys", np.append(known[kept], END))
        self.set("idf", np.append(1 + np.log((1 + total) / (1 + frequencies[kept])), 0.0))
        return total

    def _distinct(self, ids: Tensor, mask: Tensor | None) -> Ints:
        """The keys in each row, every one once per row."""
        keys = ngram_keys(ids, mask, self.vocabulary, self.shortest, self.longest).flatten(1).sort(dim=1)[0]
        first = torch.ones_like(keys, dtype=torch.bool)
        first[:, 1:] = keys[:, 1:] != keys[:, :-1]
        found: Ints = keys[first & (keys != 0)].numpy()
        return found


def _merge(known: Ints, frequencies: Ints, fresh: list[Ints]) -> tuple[Ints, Ints]:
    """Add new keys to counted ones; what was seen once is dropped where there are too many."""
    keys, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *fresh]), return_counts=True)
    every, place = np.unique(np.concatenate([known, keys]), return_inverse=True)
    sums = np.bincount(place, weights=np.concatenate([frequencies, counts]), minlength=len(every)).astype(np.int64)
    if len(every) > MOST_COUNTED:
        every, sums = every[sums > 1], sums[sums > 1]
    return every, sums
