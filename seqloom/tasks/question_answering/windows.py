"""Windows: a long sequence as pieces that overlap, so that what is short stands whole in at least one of them.

passage   |---------------------------------------|
windows   |--------------|
                    |--------------|     `overlap` tokens are in both
                              |-----------|
"""

from __future__ import annotations

import numpy as np


def cut_windows(lengths: np.ndarray, rooms: np.ndarray, overlap: int) -> np.ndarray:
    """(row, begin, end) of every window, row by row: rows of these lengths, in windows of at most so many tokens each.

    A row that fits has one window, also an empty one. Anything of at most `overlap + 1` tokens stands whole in one.
    """
    steps = np.maximum(1, rooms - overlap)
    counts = 1 + np.maximum(0, -(-(lengths - rooms) // steps))
    row = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)  # which one of its row's
    begin = number * steps[row]
    return np.stack((row, begin, np.minimum(begin + rooms[row], lengths[row])), axis=1)
