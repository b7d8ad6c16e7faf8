"""Nearest neighbours among sequences of ids: cosine similarity of their TF-IDF vectors, every one compared.

The known vectors stay sparse; queries become dense, a few at a time, and one sparse product compares them with all.
Sizes: B queries, K known sequences, F n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.layers.ngrams import Growing, TfIdf, Vectors

AT_ONCE = 64  # queries compared at once; bounds temporary memory, (K + F) x 64


class Neighbours(Growing):
    """The known vectors, as in `Vectors`."""

    bounds: Tensor
    columns: Tensor
    values: Tensor

    def __init__(self, features: TfIdf) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("bounds", torch.zeros(1, dtype=torch.int32))
        self.register_buffer("columns", torch.zeros(0, dtype=torch.int32))
        self.register_buffer("values", torch.zeros(0))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def learn(self, rows: Sequence[tuple[Tensor, Tensor | None]]) -> None:
        """Remember these sequences (ids and masks), numbered in order."""
        self.features.count(rows)
        read: list[Vectors] = [self.features(ids, mask) for ids, mask in rows]
        sizes = torch.cat([vectors.bounds.diff() for vectors in read])
        self.set("bounds", torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))
        self.set("columns", torch.cat([vectors.columns for vectors in read]))
        self.set("values", torch.cat([vectors.values for vectors in read]))

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The number of the most similar sequence for each row of (B, T) ids; the first of those equally similar."""
        known, found = Vectors(self.bounds, self.columns, self.values), []
        for start in range(0, len(ids), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            asked: Vectors = self.features(ids[part], None if mask is None else mask[part])
            queries = self.values.new_zeros(len(self.features), len(ids[part]))
            queries[asked.columns, asked.owners] = asked.values
            similar = known.times(queries)  # (K, B)
            found.append((similar > similar.amax(0) - 1e-6).byte().argmax(0))  # rounding must not break ties
        return torch.cat(found) if found else ids.new_zeros(0)
