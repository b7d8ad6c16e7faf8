"""Stateless data order: a shuffle is a function of (index, count, key), an epoch's batches of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_ROUNDS = 4


def shuffled(index: np.ndarray, count: int, key: int) -> np.ndarray:
    """The position of each index in a shuffle of range(count), computed without storing the permutation.

    A Feistel network permutes up to the next power of four; results outside the range are permuted again.
    """
    half = max(1, (max(count - 1, 1).bit_length() + 1) // 2)
    place = _permute(index.astype(np.uint64), half, key)
    while (outside := place >= count).any():
        place[outside] = _permute(place[outside], half, key)
    return place.astype(np.int64)


def shuffled_batches(count: int, batch: int, seed: int, start: int = 0) -> Iterator[np.ndarray]:
    """Endless batches of indices from range(count), reshuffled each epoch; `start`: batches to skip. An incomplete last
    batch is dropped; if there are fewer examples than a batch holds, they are repeated."""
    steps = max(1, count // batch)
    epoch, skip = divmod(start, steps)
    while True:
        key = int(np.random.default_rng((seed, epoch)).integers(2**62))
        for step in range(skip, steps):
            yield shuffled(np.arange(step * batch, (step + 1) * batch) % count, count, key)
        epoch, skip = epoch + 1, 0


def spread(count: int, total: int) -> np.ndarray:
    """`count` evenly spaced indices of range(total), because a file may be sorted by label."""
    return np.arange(count) * total // max(1, count)


def cut_by_length(order: np.ndarray, lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Cut rows sorted by ascending length into batches of at most `budget` tokens, padding included."""
    sizes, pieces, start = lengths[order], [], 0
    while start < len(order):
        size = max(1, budget // max(1, int(sizes[start])))  # upper bound: if all were as short as the first
        padded = sizes[start : start + size] * np.arange(1, len(sizes[start : start + size]) + 1)
        end = start + max(1, int(np.searchsorted(padded, budget, side="right")))
        pieces.append(order[start:end])
        start = end
    return pieces


def plan_epoch(
    rows: np.ndarray, lengths: np.ndarray, seed: int, epoch: int, batch: int, budget: int
) -> list[np.ndarray]:
    """The batches of an epoch: rows sorted by length, ties in random order, then the batches shuffled.

    `budget`: tokens per batch, padding included; 0: `batch` rows.
    """
    rng = np.random.default_rng((seed, epoch))
    mixed = rng.permutation(rows)
    by_length = mixed[np.argsort(lengths[mixed], kind="stable")]
    if budget:
        batches = cut_by_length(by_length, lengths, budget)
    else:
        batches = np.split(by_length, range(batch, len(by_length), batch))
    return [batches[n] for n in rng.permutation(len(batches))]


def _permute(value: np.ndarray, half: int, key: int) -> np.ndarray:
    low = np.uint64((1 << half) - 1)
    left, right = value >> np.uint64(half), value & low
    for n in range(_ROUNDS):
        left, right = right, left ^ (_mix(right, key + n) & low)
    return (left << np.uint64(half)) | right


def _mix(value: np.ndarray, key: int) -> np.ndarray:
    """Mix 64 bits (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        z = value + np.uint64((key * 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
