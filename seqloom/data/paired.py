"""Texts as ids, row by row: a token stream in which every row ends with an end of text; and pairs of such rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from seqloom.data.stream import TokenStream

if TYPE_CHECKING:
    from seqloom.data.pairs import PairSource

_BLOCK = 1 << 20  # ids looked through at once


class Documents:
    """The texts of a stream, one by one, each with its end."""

    def __init__(self, stream: TokenStream, end: int) -> None:
        self.stream = stream
        self._bounds = _bounds(stream, end)
        self.lengths = np.diff(self._bounds)  # ends counted

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.stream[self._bounds[row] : self._bounds[row + 1]]


class PairRows:
    def __init__(self, source: TokenStream, target: TokenStream, ends: tuple[int, int], origin: PairSource) -> None:
        """`ends`: the id that ends a row, on each side."""
        self.origin = origin
        self._sides = Documents(source, ends[0]), Documents(target, ends[1])
        self.lengths = np.stack([side.lengths for side in self._sides], axis=1)  # (rows, 2), ends counted
        self.bytes = source.bytes + target.bytes

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """Of the target."""
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
        """The pairs as they were written."""
        return ((source, target) for _, source, target in self.origin.rows())


def _bounds(stream: TokenStream, end: int) -> np.ndarray:
    """Where rows begin, and where the last one ends."""
    starts = range(0, len(stream), _BLOCK)
    found = [start + 1 + np.flatnonzero(stream[start : start + _BLOCK] == end) for start in starts]
    return np.concatenate([np.zeros(1, np.int64), *found])
