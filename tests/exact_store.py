"""Exact search with numpy, in memory: the oracle that other stores are tested against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from seqloom.retrieve.stores.store import Hit, Point, ordered
from seqloom.retrieve.terms import Sparse


class ExactStore:
    def __init__(self) -> None:
        self._points: dict[int, Point] = {}

    def upsert(self, points: Sequence[Point]) -> None:
        self._points |= {point.id: point for point in points}

    def delete(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._points.pop(id, None)

    def flush(self) -> None: ...

    def by_terms(self, query: Sparse, limit: int) -> list[Hit]:
        hits = []
        for id, point in self._points.items():
            _, here, there = np.intersect1d(point.terms.ids, query.ids, assume_unique=True, return_indices=True)
            if len(here):
                hits.append(Hit(id, float(point.terms.weights[here] @ query.weights[there])))
        return ordered(hits)[:limit]

    def by_vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        hits = [Hit(id, float(p.vector @ query)) for id, p in self._points.items() if p.vector is not None]
        return ordered(hits)[:limit]

    def ids(self) -> Iterator[int]:
        return iter(list(self._points))

    def count(self) -> int:
        return len(self._points)

    def tidy(self) -> None: ...

    def close(self) -> None: ...
