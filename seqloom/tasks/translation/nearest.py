"""Nearest neighbours among texts: cosine similarity of TF-IDF weighted character trigrams.

Trigrams are hashed into a fixed number of buckets and texts are processed in blocks, so memory is bounded. scipy is
imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

MOST = 200_000  # texts searched, at most
_PAIRS = 200_000_000  # comparisons, at most
_BUCKETS = 1 << 18
_BLOCK = 2000  # texts per block
_CUT = 400  # characters of a text that count


def searched(queries: int, known: int) -> int:
    """How many of the known texts to search for that many queries: it should take seconds, not hours."""
    return min(known, MOST, max(1, _PAIRS // max(1, queries)))


def nearest(queries: Sequence[str], known: Sequence[str]) -> list[int]:
    """For each query, the index of the most similar known text; ties, and queries like no text, give the first."""
    weights = _idf(known)
    vectors = _vectors(queries, weights).T.tocsc()  # (buckets, queries)
    best, index = np.zeros(len(queries)), np.zeros(len(queries), np.int64)
    for start, block in _blocks(known):
        similarity = (_vectors(block, weights) @ vectors).tocsc()  # (block, queries)
        highest = np.asarray(similarity.max(axis=0).todense()).ravel()
        better = np.flatnonzero(highest > best + 1e-9)  # rounding must not break ties
        best[better] = highest[better]
        for n in better:
            column = similarity[:, [n]].toarray().ravel()
            index[n] = start + int(np.argmax(column > highest[n] - 1e-9))
    return index.tolist()


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    return ((start, texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK))


def _idf(texts: Sequence[str]) -> np.ndarray:
    """Inverse document frequency of every bucket."""
    seen = np.zeros(_BUCKETS)
    for _, block in _blocks(texts):
        seen += np.bincount(_counts(block).indices, minlength=_BUCKETS)
    return np.log((1 + len(texts)) / (1 + seen)) + 1


def _vectors(texts: Sequence[str], weights: np.ndarray) -> sparse.csr_matrix:
    """TF-IDF vectors of length 1, (texts, buckets)."""
    from scipy import sparse

    counts = _counts(texts)
    counts.data *= weights[counts.indices]
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sparse.diags(1 / np.maximum(length, 1e-12)) @ counts


def _counts(texts: Sequence[str]) -> sparse.csr_matrix:
    """How often each trigram occurs in each text, with a space at both ends; (texts, buckets)."""
    from scipy import sparse

    codes = [np.array([32, *map(ord, text[:_CUT].lower()), 32], np.uint64) for text in texts]
    row = np.repeat(np.arange(len(codes)), [max(0, len(code) - 2) for code in codes])
    hashed = np.concatenate([_hash(code) for code in codes])
    found = sparse.coo_matrix((np.ones(len(row)), (row, hashed)), shape=(len(texts), _BUCKETS))
    return found.tocsr()  # sums duplicate entries


def _hash(code: np.ndarray) -> np.ndarray:
    """The bucket of each trigram."""
    a, b, c = code[:-2], code[1:-1], code[2:]
    mixed = (a * np.uint64(1_000_003) + b) * np.uint64(1_000_003) + c
    found: np.ndarray = ((mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(46)).astype(np.int64)  # 18 bits remain
    return found
