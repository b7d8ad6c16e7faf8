"""The most similar of many texts: cosine similarity of TF-IDF weighted character trigrams."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.layers.neighbours import Neighbours
from seqloom.layers.ngrams import TfIdf

MOST = 200_000  # texts searched, at most
_PAIRS = 1_000_000_000  # comparisons, at most
_BLOCK = 250  # texts per block
_CUT = 400  # characters of a text that count
_CODES = 0x110000  # of Unicode


def searched(queries: int, known: int) -> int:
    """How many of the known texts to search for that many queries: it should take seconds, not hours."""
    return min(known, MOST, max(1, _PAIRS // max(1, queries)))


def nearest(queries: Sequence[str], known: Sequence[str]) -> list[int]:
    """For each query, the index of the most similar known text; ties, and queries like no text, give the first."""
    memory = Neighbours(TfIdf(_CODES, longest=3, shortest=3))
    memory.learn(_blocks(known))
    return [index for block in _blocks(queries) for index in memory(*block).tolist()]


def _blocks(texts: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
    """The characters of each text, in lower case and with a space at both ends, and their masks."""
    codes = [torch.tensor([32, *map(ord, text[:_CUT].lower()), 32]) for text in texts]
    return [pad(codes[start : start + _BLOCK]) for start in range(0, len(codes), _BLOCK)]
