"""A Qdrant server or cluster, through qdrant-client: for indexes that several machines use, or that outgrow one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seqloom.core.errors import RunError, UserError
from seqloom.retrieve.stores.store import Hit, Point, ordered
from seqloom.retrieve.terms import Sparse

_TERMS, _VECTOR = "terms", "vector"
_AT_ONCE = 500  # points per request: a server refuses requests of more than 32 MB
_PAGE = 10_000
_SECONDS = 60  # before a request counts as failed


class QdrantStore:
    def __init__(self, client: Any, collection: str, width: int | None, name: str = "qdrant") -> None:
        """Opens the collection, or creates it. `name`: of the server, for messages."""
        self._models, self._client = _package().models, client
        self._collection, self._name = collection, name
        with self._explained():
            if not client.collection_exists(collection):
                client.create_collection(collection, **self._layout(width))

    @classmethod
    def at(cls, address: str, width: int | None) -> QdrantStore:
        """`address`: http://HOST:6333/COLLECTION."""
        url, _, collection = address.rpartition("/")
        if "://" not in url or not collection:
            raise UserError(f"store qdrant:{address}: not an address; use qdrant:http://HOST:6333/COLLECTION")
        client = _package().QdrantClient(
            url=url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=_SECONDS, check_compatibility=False
        )
        return cls(client, collection, width, url)

    def upsert(self, points: Sequence[Point]) -> None:
        made = [self._models.PointStruct(id=point.id, vector=self._vectors(point), payload={}) for point in points]
        self._in_parts(made, lambda some: self._client.upsert(self._collection, some, wait=True))

    def delete(self, ids: Sequence[int]) -> None:
        chosen = self._models.PointIdsList
        self._in_parts(list(ids), lambda some: self._client.delete(self._collection, chosen(points=some), wait=True))

    def flush(self) -> None:
        """Nothing to do: what a server answered `wait` with is in its log on disk."""

    def by_terms(self, query: Sparse, limit: int) -> list[Hit]:
        return self._nearest(self._sparse(query), _TERMS, limit) if len(query.ids) else []

    def by_vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        return self._nearest(query.tolist(), _VECTOR, limit)

    def ids(self) -> Iterator[int]:
        offset = None
        while True:
            with self._explained():
                records, offset = self._client.scroll(
                    self._collection, limit=_PAGE, offset=offset, with_payload=False, with_vectors=False
                )
            yield from (int(record.id) for record in records)
            if offset is None:
                return

    def count(self) -> int:
        with self._explained():
            return int(self._client.count(self._collection, exact=True).count)

    def tidy(self) -> None:
        """Nothing to do: a server reorganises by itself."""

    def close(self) -> None:
        self._client.close()

    def _layout(self, width: int | None) -> dict[str, Any]:
        models = self._models
        dense = {_VECTOR: models.VectorParams(size=width, distance=models.Distance.DOT)} if width else {}
        return {"vectors_config": dense, "sparse_vectors_config": {_TERMS: models.SparseVectorParams()}}

    def _vectors(self, point: Point) -> dict[str, Any]:
        dense = {} if point.vector is None else {_VECTOR: point.vector.tolist()}
        return {_TERMS: self._sparse(point.terms), **dense}

    def _sparse(self, terms: Sparse) -> Any:
        return self._models.SparseVector(indices=terms.ids.tolist(), values=terms.weights.tolist())

    def _nearest(self, query: Any, using: str, limit: int) -> list[Hit]:
        with self._explained():
            found = self._client.query_points(
                self._collection, query=query, using=using, limit=limit, with_payload=False,
                search_params=self._models.SearchParams(exact=True),
            )  # fmt: skip
        return ordered([Hit(int(point.id), float(point.score)) for point in found.points])

    def _in_parts(self, items: list[Any], send: Callable[[list[Any]], object]) -> None:
        for first in range(0, len(items), _AT_ONCE):
            with self._explained():
                send(items[first : first + _AT_ONCE])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """The client raises errors of several libraries."""
        try:
            yield
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            way = "see that it runs, and try again"
            raise RunError(f"{self._name}: the Qdrant server failed ({reason}); {way}") from None


def _package() -> Any:
    try:
        import qdrant_client
    except ImportError:
        raise UserError("a Qdrant server needs the qdrant-client package: pip install 'seqloom[servers]'") from None
    return qdrant_client
