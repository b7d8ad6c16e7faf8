"""Two rankings into one: by terms (BM25) and by vectors. Settings chosen on the training queries of SciFact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from seqloom.retrieve.stores.store import Hit, ordered
from seqloom.retrieve.terms import Sparse

DEPTH = 100  # points of each ranking that are fused


def inverse_frequencies(query: Sparse, frequencies: Mapping[int, int], points: int) -> Sparse:
    """The query with its weights times ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N points have a term; terms that
    none has are left out."""
    n = np.array([frequencies.get(int(id), 0) for id in query.ids], np.float64)
    idf = np.log1p((points - n + 0.5) / (n + 0.5))
    return Sparse(query.ids[n > 0], (query.weights * idf)[n > 0].astype(np.float32))


def fuse(by_terms: Sequence[Hit], by_vector: Sequence[Hit], share: float = 0.5) -> list[Hit]:
    return ordered([])
