"""Orders that cost nothing to remember: a shuffle is a function of (index, count, key)."""

from __future__ import annotations

import numpy as np

_ROUNDS = 4


def shuffled(index: np.ndarray, count: int, key: int) -> np.ndarray:
    """Where each index of range(count) goes in a shuffle of all of them, without making the shuffle.

    A Feistel network permutes the next power of four; whatever falls outside is sent through again.
    """
    half = max(1, (max(count - 1, 1).bit_length() + 1) // 2)
    place = _permute(index.astype(np.uint64), half, key)
    while (outside := place >= count).any():
        place[outside] = _permute(place[outside], half, key)
    return place.astype(np.int64)


def _permute(value: np.ndarray, half: int, key: int) -> np.ndarray:
    low = np.uint64((1 << half) - 1)
    left, right = value >> np.uint64(half), value & low
    for n in range(_ROUNDS):
        left, right = right, left ^ (_mix(right, key + n) & low)
    return (left << np.uint64(half)) | right


def _mix(value: np.ndarray, key: int) -> np.ndarray:
    """Thorough mixing of 64 bits (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        z = value + np.uint64((key * 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
