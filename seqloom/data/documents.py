"""Texts as token ids, row by row: a token stream in which every row ends with an end-of-text token."""

from __future__ import annotations

import numpy as np

from seqloom.data.stream import TokenStream

_BLOCK = 1 << 20  # ids scanned at once


class Documents:
    """The texts of a stream, each with its end-of-text token."""

    def __init__(self, stream: TokenStream, end: int) -> None:
        self.stream = stream
        self._bounds = _bounds(stream, end)
        self.lengths = np.diff(self._bounds)  # including the end-of-text token

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.stream[self._bounds[row] : self._bounds[row + 1]]


def _bounds(stream: TokenStream, end: int) -> np.ndarray:
    """The start of each row, and the end of the last."""
    starts = range(0, len(stream), _BLOCK)
    found = [start + 1 + np.flatnonzero(stream[start : start + _BLOCK] == end) for start in starts]
    return np.concatenate([np.zeros(1, np.int64), *found])
