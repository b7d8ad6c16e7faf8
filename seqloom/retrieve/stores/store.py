"""A store: the points of an index, found by their terms (BM25) or by their vectors.

Every store gives the same answers, which a test holds over all of them; they differ in where the points live. A score
is a dot product: of the weights of the terms, or of the vectors.

A store knows no inverse document frequencies, though some could: theirs go on counting what was deleted or replaced
until they reorganise, so that scores would depend on the history of an index. The catalogue counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from seqloom.retrieve.terms import Sparse


class Point(NamedTuple):
    id: int  # 0 to 2**63 - 1
    terms: Sparse
    vector: np.ndarray | None  # None: an index without an encoder


class Hit(NamedTuple):
    id: int
    score: float


class Store(Protocol):
    def upsert(self, points: Sequence[Point]) -> None:
        """Add points; those whose id exists are replaced."""

    def delete(self, ids: Sequence[int]) -> None:
        """Remove points; ids that do not exist are ignored."""

    def flush(self) -> None:
        """Return when everything upserted and deleted before is on disk."""

    def by_terms(self, query: Sparse, limit: int) -> list[Hit]:
        """The best points that share a term with the query, the best first."""

    def by_vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        """The points with the nearest vectors, the nearest first."""

    def ids(self) -> Iterator[int]:
        """Of all points, in any order."""

    def count(self) -> int: ...

    def tidy(self) -> None:
        """Give back the space of deleted points, where that is not done by itself."""

    def close(self) -> None: ...


def ordered(hits: Sequence[Hit]) -> list[Hit]:
    """The best first; equal scores by id, so that the order is the same everywhere."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def without_password(text: str) -> str:
    """An address as it is written down, or a message with it; Postgres takes a password from PGPASSWORD or .pgpass as
    well."""
    return re.sub(r"(://[^:/@\s]*):[^/\s]*@", r"\1@", re.sub(r"([?&])password=[^&#\s]*&?", r"\1", text)).rstrip("?&")
