"""Windows: a long sequence as overlapping pieces, so that any short span is whole in at least one of them.

passage   |---------------------------------------|
windows   |--------------|
                    |--------------|     `overlap` tokens are in both
                              |-----------|
"""

from __future__ import annotations

import numpy as np


def cut_windows(lengths: np.ndarray, rooms: np.ndarray, overlap: int) -> np.ndarray:
    """(row, begin, end) of every window, row by row; `lengths` and `rooms`: tokens per row, and per window of it.

    A row that fits has one window, even if it is empty. Any span of up to `overlap + 1` tokens is whole in a window.
    """
    steps = np.maximum(1, rooms - overlap)
    counts = 1 + np.maximum(0, -(-(lengths - rooms) // steps))
    row = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)  # index within its row
    begin = number * steps[row]
    return np.stack((row, begin, np.minimum(begin + rooms[row], lengths[row])), axis=1)
