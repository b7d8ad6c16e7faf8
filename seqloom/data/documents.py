"""Texts as ids, row by row: a token stream in which every row ends with an end of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seqloom.data.stream import TokenStream

if TYPE_CHECKING:
    pass


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


def _bounds(stream: TokenStream, end: int) -> np.ndarray:
    """Where rows begin, and where the last one ends."""
    starts = range(0, len(stream), _BLOCK)
    found = [start + 1 + np.flatnonzero(stream[start : start + _BLOCK] == end) for start in starts]
    return np.concatenate([np.zeros(1, np.int64), *found])
