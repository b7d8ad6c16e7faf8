"""Two rankings into one: by terms (BM25) and by vectors.

Chosen on the training queries of SciFact, 809 with whole abstracts and MiniLM (nDCG@10; the two halves of the queries
agree): BM25 0.697, vectors 0.660; reciprocal ranks with the usual constant of 60 0.709, with the best of those tried
0.727; scores, each scaled to its best and its 100th, 200th or 1,000th, 0.733 to 0.735 in equal parts, less with other
shares. Scaling by mean and deviation was no better (0.732 to 0.737). Adding the cosine as it is was (0.738), but that
holds for one encoder: the cosines of another may all be near 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from seqloom.retrieve.stores.store import Hit, ordered
from seqloom.retrieve.terms import Sparse

DEPTH = 300  # points of each ranking that are fused


def inverse_frequencies(query: Sparse, frequencies: Mapping[int, int], points: int) -> Sparse:
    """The query with its weights times ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N points have a term; terms that
    none has are left out."""
    n = np.array([frequencies.get(int(id), 0) for id in query.ids], np.float64)
    idf = np.log1p((points - n + 0.5) / (n + 0.5))
    return Sparse(query.ids[n > 0], (query.weights * idf)[n > 0].astype(np.float32))


def fuse(by_terms: Sequence[Hit], by_vector: Sequence[Hit], depth: int = DEPTH) -> list[Hit]:
    """The mean of both scores, each scaled so that the best is 1 and the last of `depth` is 0, as is what is not among
    them. A ranking by terms that is shorter has all points that share a term, so 0 is its least score."""
    parts = (
        _scaled(by_terms, by_terms[-1].score if len(by_terms) >= depth else 0.0),
        _scaled(by_vector, by_vector[-1].score if by_vector else 0.0),
    )
    ids = parts[0].keys() | parts[1].keys()
    return ordered([Hit(id, sum(part.get(id, 0.0) for part in parts) / 2) for id in ids])


def _scaled(hits: Sequence[Hit], floor: float) -> dict[int, float]:
    span = hits[0].score - floor if hits else 0.0
    return {hit.id: (hit.score - floor) / span if span > 0 else 1.0 for hit in hits}
