"""Postgres with the pgvector extension: for those who have a Postgres already.

Vectors are a column of pgvector and are searched exactly. Terms are rows of a second table, (term, point, weight): the
sparse vectors of pgvector end at 1,000,000,000 dimensions, fewer than there are ids of terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seqloom.core.errors import RunError, UserError
from seqloom.retrieve.stores.store import Hit, Point, ordered, without_password
from seqloom.retrieve.terms import Sparse

_TABLE = "seqloom"  # where an address names none; an index names one


class PostgresStore:
    def __init__(self, connection: Any, table: str, width: int | None, name: str = "postgres") -> None:
        """Opens the tables, or creates them. `name`: of the database, for messages."""
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,40}", table):
            raise UserError(f"store {name}#{table}: not a name for a table; use lower-case letters, digits and _")
        self._connection, self._name = connection, name
        self._points, self._terms = f"{table}_points", f"{table}_terms"
        if width:
            self._extend()
        with self._explained(), connection.transaction():
            if width:
                _packages()[1].register_vector(connection)
            self._create(width)

    @classmethod
    def at(cls, address: str, width: int | None) -> PostgresStore:
        """`address`: postgresql://USER@HOST/DATABASE#TABLE."""
        url, _, table = address.partition("#")
        driver, _ = _packages()
        name = without_password(url)
        try:
            connection = driver.connect(url, autocommit=True, connect_timeout=20)
        except driver.Error as error:
            raise RunError(f"{name}: {_reason(error)}; see that Postgres runs and lets you in") from None
        return cls(connection, table or _TABLE, width, name)

    def upsert(self, points: Sequence[Point]) -> None:
        if not points:
            return
        with self._explained(), self._connection.transaction():
            self._remove([point.id for point in points])
            with self._connection.cursor().copy(f"COPY {self._points} (id, vector) FROM STDIN") as rows:
                for point in points:
                    vector = None if point.vector is None else f"[{','.join(map(str, point.vector.tolist()))}]"
                    rows.write_row((point.id, vector))
            with self._connection.cursor().copy(f"COPY {self._terms} (term, point, weight) FROM STDIN") as rows:
                for point in points:
                    for term, weight in zip(point.terms.ids.tolist(), point.terms.weights.tolist(), strict=True):
                        rows.write_row((term, point.id, weight))

    def delete(self, ids: Sequence[int]) -> None:
        with self._explained(), self._connection.transaction():
            self._remove(list(ids))

    def flush(self) -> None:
        """Nothing to do: a committed transaction is on disk."""

    def by_terms(self, query: Sparse, limit: int) -> list[Hit]:
        wanted = "unnest(%s::bigint[], %s::float8[]) AS asked (term, weight)"
        return self._hits(
            f"SELECT point, sum(asked.weight * {self._terms}.weight) AS score FROM {self._terms} JOIN {wanted} "
            "USING (term) GROUP BY point ORDER BY score DESC, point LIMIT %s",
            (query.ids.tolist(), query.weights.tolist(), limit),
        )

    def by_vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        return self._hits(
            f"SELECT id, -(vector <#> %s) AS score FROM {self._points} WHERE vector IS NOT NULL "
            "ORDER BY score DESC, id LIMIT %s",
            (query, limit),
        )

    def ids(self) -> Iterator[int]:
        return iter([int(id) for (id,) in self._rows(f"SELECT id FROM {self._points}")])

    def count(self) -> int:
        return int(self._rows(f"SELECT count(*) FROM {self._points}")[0][0])

    def tidy(self) -> None:
        """So that the planner knows what is there."""
        self._rows(f"ANALYZE {self._points}", fetch=False)
        self._rows(f"ANALYZE {self._terms}", fetch=False)

    def close(self) -> None:
        self._connection.close()

    def _extend(self) -> None:
        try:
            self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except _packages()[0].Error as error:
            way = "have it installed and CREATE EXTENSION vector run there, or index with --encoder none"
            raise RunError(f"{self._name}: pgvector is missing ({_reason(error)}); {way}") from None

    def _create(self, width: int | None) -> None:
        kind = f"vector({width})" if width else "text"  # never filled without an encoder
        for statement in (
            f"CREATE TABLE IF NOT EXISTS {self._points} (id bigint PRIMARY KEY, vector {kind})",
            f"CREATE TABLE IF NOT EXISTS {self._terms} (term bigint, point bigint, weight real, "
            "PRIMARY KEY (term, point))",
            f"CREATE INDEX IF NOT EXISTS {self._terms}_by_point ON {self._terms} (point)",
        ):
            self._connection.execute(statement)

    def _remove(self, ids: list[int]) -> None:
        self._connection.execute(f"DELETE FROM {self._points} WHERE id = ANY(%s)", (ids,))
        self._connection.execute(f"DELETE FROM {self._terms} WHERE point = ANY(%s)", (ids,))

    def _hits(self, query: str, values: tuple[Any, ...]) -> list[Hit]:
        return ordered([Hit(int(id), float(score)) for id, score in self._rows(query, values)])

    def _rows(self, query: str, values: tuple[Any, ...] = (), fetch: bool = True) -> list[Any]:
        with self._explained():
            done = self._connection.execute(query, values)
            return list(done.fetchall()) if fetch else []

    @contextmanager
    def _explained(self) -> Iterator[None]:
        driver, _ = _packages()
        try:
            yield
        except driver.Error as error:
            raise RunError(
                f"{self._name}: Postgres failed ({_reason(error)}); see that it runs, and try again"
            ) from None


def _reason(error: Exception) -> str:
    return without_password(" ".join(str(error).split()))[:200] or type(error).__name__


def _packages() -> tuple[Any, Any]:
    try:
        import pgvector.psycopg
        import psycopg
    except ImportError:
        raise UserError("Postgres needs psycopg and pgvector: pip install 'seqloom[servers]'") from None
    return psycopg, pgvector.psycopg
