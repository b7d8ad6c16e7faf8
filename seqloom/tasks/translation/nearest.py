"""Nearest neighbours among texts: cosine similarity of character trigrams, weighed by their rarity (TF-IDF).

Trigrams are hashed into a table of fixed size and the texts are gone through in blocks, so memory is bounded. scipy is
loaded when needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

MOST = 200_000  # texts that are searched
_PAIRS = 200_000_000  # comparisons, at most
_BUCKETS = 1 << 18
_BLOCK = 2000  # texts at once
_CUT = 400  # characters of a text that are looked at


def searched(asked: int, known: int) -> int:
    """How many of the known texts are searched for so many questions: it should take seconds, not hours."""
    return min(known, MOST, max(1, _PAIRS // max(1, asked)))


def nearest(asked: Sequence[str], known: Sequence[str]) -> list[int]:
    """For each text the place of the most similar known one; of equals, and of none, the first."""
    weights = _rarity(known)
    questions = _vectors(asked, weights).T.tocsc()  # (buckets, asked)
    best, place = np.zeros(len(asked)), np.zeros(len(asked), np.int64)
    for start, block in _blocks(known):
        alike = (_vectors(block, weights) @ questions).tocsc()  # (block, asked)
        found = np.asarray(alike.max(axis=0).todense()).ravel()
        better = np.flatnonzero(found > best + 1e-9)  # rounding makes no text nearer
        best[better] = found[better]
        for n in better:
            column = alike[:, [n]].toarray().ravel()
            place[n] = start + int(np.argmax(column > found[n] - 1e-9))
    return place.tolist()


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    return ((start, texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK))


def _rarity(texts: Sequence[str]) -> np.ndarray:
    """Inverse document frequency of every bucket."""
    seen = np.zeros(_BUCKETS)
    for _, block in _blocks(texts):
        seen += np.bincount(_counts(block).indices, minlength=_BUCKETS)
    return np.log((1 + len(texts)) / (1 + seen)) + 1


def _vectors(texts: Sequence[str], weights: np.ndarray) -> sparse.csr_matrix:
    """Of length 1, (texts, buckets)."""
    from scipy import sparse

    counts = _counts(texts)
    counts.data *= weights[counts.indices]
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sparse.diags(1 / np.maximum(length, 1e-12)) @ counts


def _counts(texts: Sequence[str]) -> sparse.csr_matrix:
    """How often every trigram stands in a text, its ends counted as blanks; (texts, buckets)."""
    from scipy import sparse

    codes = [np.array([32, *map(ord, text[:_CUT].lower()), 32], np.uint64) for text in texts]
    row = np.repeat(np.arange(len(codes)), [max(0, len(code) - 2) for code in codes])
    hashed = np.concatenate([_hash(code) for code in codes])
    found = sparse.coo_matrix((np.ones(len(row)), (row, hashed)), shape=(len(texts), _BUCKETS))
    return found.tocsr()  # adds up what stands there twice


def _hash(code: np.ndarray) -> np.ndarray:
    """A bucket for every three neighbours."""
    a, b, c = code[:-2], code[1:-1], code[2:]
    mixed = (a * np.uint64(1_000_003) + b) * np.uint64(1_000_003) + c
    found: np.ndarray = ((mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(46)).astype(np.int64)  # 18 bits are left
    return found
