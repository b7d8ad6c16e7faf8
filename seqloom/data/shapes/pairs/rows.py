"""Pairs of texts as token ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from seqloom.data.documents import Documents
from seqloom.data.stream import TokenStream

if TYPE_CHECKING:
    from seqloom.data.shapes.pairs.reading import PairSource


class PairRows:
    def __init__(self, source: TokenStream, target: TokenStream, ends: tuple[int, int], origin: PairSource) -> None:
        """`ends`: the id that ends a row, on each side."""
        self.origin = origin
        self._sides = Documents(source, ends[0]), Documents(target, ends[1])
        self.lengths = np.stack([side.lengths for side in self._sides], axis=1)  # (rows, 2), including end tokens
        self.bytes = source.bytes + target.bytes

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """Target tokens."""
        return int(self.lengths[:, 1].sum())

    @property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """How often each id occurs, on each side."""
        return self._sides[0].stream.counts, self._sides[1].stream.counts

    def source(self, row: int) -> np.ndarray:
        return self._sides[0][row]

    def target(self, row: int) -> np.ndarray:
        return self._sides[1][row]

    def texts(self) -> Iterator[tuple[str, str]]:
        """The original texts."""
        return ((source, target) for _, source, target in self.origin.rows())
