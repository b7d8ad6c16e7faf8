"""Every store gives the answers of the exact one, whatever was added, replaced and deleted before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.core.errors import UserError
from seqloom.retrieve.stores.edge import EdgeStore
from seqloom.retrieve.stores.exact import ExactStore
from seqloom.retrieve.stores.store import Hit, Point, Store
from seqloom.retrieve.terms import Sparse

WIDTH = 8
KINDS = ["edge"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = EdgeStore(tmp_path / "store", WIDTH)
    yield opened
    opened.close()


def sparse(rng: np.random.Generator, size: int) -> Sparse:
    ids = np.unique(rng.zipf(1.5, size).clip(max=60).astype(np.uint32) * np.uint32(71_000_000))
    return Sparse(ids, rng.random(len(ids)).astype(np.float32) + 0.1)


def point(rng: np.random.Generator, id: int) -> Point:
    vector = rng.standard_normal(WIDTH).astype(np.float32)
    return Point(id, sparse(rng, 12), vector / np.linalg.norm(vector))


def assert_alike(found: list[Hit], expected: list[Hit]) -> None:
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-4)


def assert_equal_stores(store: Store, oracle: Store, rng: np.random.Generator) -> None:
    assert store.count() == oracle.count()
    assert sorted(store.ids()) == sorted(oracle.ids())
    for _ in range(5):
        question, vector = sparse(rng, 4), point(rng, 0).vector
        assert vector is not None
        assert_alike(store.by_terms(question, 10), oracle.by_terms(question, 10))
        assert_alike(store.by_vector(vector, 10), oracle.by_vector(vector, 10))


def test_answers_are_those_of_exact_search(store: Store) -> None:
    rng, oracle = np.random.default_rng(0), ExactStore()
    for batch in range(3):
        points = [point(rng, 2**62 + batch * 50 + n) for n in range(50)]
        store.upsert(points)
        oracle.upsert(points)
    store.flush()
    assert_equal_stores(store, oracle, rng)


def test_after_replacing_and_deleting_points_nothing_of_the_old_ones_counts(store: Store) -> None:
    rng, oracle = np.random.default_rng(1), ExactStore()
    for either in (store, oracle):
        either.upsert([point(np.random.default_rng(n), n) for n in range(90)])
        either.upsert([point(np.random.default_rng(n + 1000), n) for n in range(20, 50)])
        either.delete([*range(40, 80), 12345])
        either.flush()
    assert_equal_stores(store, oracle, rng)
    store.tidy()
    assert_equal_stores(store, oracle, rng)


def test_a_query_without_terms_and_an_empty_store_find_nothing(store: Store) -> None:
    empty = Sparse(np.array([], np.uint32), np.array([], np.float32))
    assert store.by_terms(empty, 5) == [] == store.by_vector(np.ones(WIDTH, np.float32), 5)
    store.upsert([])
    store.delete([])
    assert store.count() == 0 and list(store.ids()) == []


def test_a_point_without_terms_is_found_by_its_vector(store: Store) -> None:
    empty = Sparse(np.array([], np.uint32), np.array([], np.float32))
    vector = np.eye(WIDTH, dtype=np.float32)[0]
    store.upsert([Point(7, empty, vector)])
    assert store.by_vector(vector, 5) == [Hit(7, 1.0)]


def test_an_edge_store_keeps_its_points(tmp_path: Path) -> None:
    rng, oracle = np.random.default_rng(2), ExactStore()
    points = [point(rng, n) for n in range(30)]
    oracle.upsert(points)
    first = EdgeStore(tmp_path / "store", WIDTH)
    first.upsert(points)
    first.flush()
    first.close()
    again = EdgeStore(tmp_path / "store", WIDTH)
    assert_equal_stores(again, oracle, rng)
    again.close()


def test_an_edge_store_without_vectors(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path / "store", None)
    store.upsert([point(np.random.default_rng(n), n)._replace(vector=None) for n in range(5)])
    assert store.count() == 5
    store.close()


def test_an_edge_store_in_use_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.retrieve.stores.edge._PATIENCE", 0.0)
    first: Any = EdgeStore(tmp_path / "store", WIDTH)
    with pytest.raises(UserError, match=r"^[^\n]*: in use by another process; wait for it to finish$"):
        EdgeStore(tmp_path / "store", WIDTH)
    first.close()
