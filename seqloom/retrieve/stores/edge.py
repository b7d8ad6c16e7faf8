"""Qdrant Edge: a store inside this process, in a folder of the index. The default, and the only file that knows it.

Vectors are searched exactly, without an approximate index: 100,000 of them take a few milliseconds. Its files are
mapped into memory, so that a full disk would kill the process: some space must be free before anything is written.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import RunError, UserError
from seqloom.retrieve.stores.store import Hit, Point, ordered
from seqloom.retrieve.terms import Sparse
from seqloom.runs import durable
from seqloom.runs.durable import Damaged, shown
from seqloom.runs.lock import InUse

_TERMS, _VECTOR = "terms", "vector"
_THRESHOLD = 1000  # KB of vectors after which `tidy` makes a segment that opens quickly
_PAGE = 10_000  # ids per request
_SPARE = 64 << 20  # bytes that must be free
_TRIAL = 15.0  # seconds to open a store
_CRASHES = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV}
_PATIENCE = 2.0  # seconds to wait for another process, which may only have a question


class EdgeStore:
    def __init__(self, folder: Path, width: int | None) -> None:
        """Opens the store in this folder, or creates it; `width`: of the vectors."""
        self._edge, self._folder = _package(), folder
        if folder.exists():
            _try(folder)
        else:
            self._create(width)
        self._shard = self._open()

    def upsert(self, points: Sequence[Point]) -> None:
        edge = self._edge
        if points:
            self._check_space()
            made = [edge.Point(id=point.id, vector=self._vectors(point), payload={}) for point in points]
            with self._explained():
                self._shard.update(edge.UpdateOperation.upsert_points(made))

    def delete(self, ids: Sequence[int]) -> None:
        if ids:
            with self._explained():
                self._shard.update(self._edge.UpdateOperation.delete_points(list(ids)))

    def flush(self) -> None:
        with self._explained():
            self._shard.flush()

    def by_terms(self, query: Sparse, limit: int) -> list[Hit]:
        return self._nearest(self._sparse(query), _TERMS, limit) if len(query.ids) else []

    def by_vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        return self._nearest(query.tolist(), _VECTOR, limit)

    def ids(self) -> Iterator[int]:
        offset = None
        while True:
            request = self._edge.ScrollRequest(offset=offset, limit=_PAGE, with_payload=False, with_vector=False)
            with self._explained():
                records, offset = self._shard.scroll(request)
            yield from (int(record.id) for record in records)
            if offset is None:
                return

    def count(self) -> int:
        with self._explained():
            return int(self._shard.count(self._edge.CountRequest(exact=True)))

    def tidy(self) -> None:
        """Without the space for a second copy it is left as it is, which costs only time."""
        size = sum(path.stat().st_blocks * 512 for path in self._folder.rglob("*") if path.is_file())
        if shutil.disk_usage(self._folder).free > size + _SPARE:
            with self._explained():
                self._shard.optimize()

    def close(self) -> None:
        self._shard.close()

    def _vectors(self, point: Point) -> dict[str, Any]:
        dense = {} if point.vector is None else {_VECTOR: point.vector.tolist()}
        return {_TERMS: self._sparse(point.terms), **dense}

    def _sparse(self, terms: Sparse) -> Any:
        return self._edge.SparseVector(indices=terms.ids.tolist(), values=terms.weights.tolist())

    def _nearest(self, query: Any, using: str, limit: int) -> list[Hit]:
        edge = self._edge
        wanted = edge.Query.Nearest(query, using=using)
        request = edge.QueryRequest(limit=limit, query=wanted, params=edge.SearchParams(exact=True))
        with self._explained():
            return ordered([Hit(int(point.id), float(point.score)) for point in self._shard.query(request)])

    def _create(self, width: int | None) -> None:
        """Beside its place, and moved there when it is whole."""
        durable.make_folder(self._folder.parent)
        made = self._folder.with_name(self._folder.name + ".new")
        self._check_space()
        with durable.writing(self._folder):
            if made.exists():
                shutil.rmtree(made)
            with self._explained():
                self._edge.EdgeShard.create(str(made), self._config(width)).close()
            os.rename(made, self._folder)
            durable.sync_folder(self._folder.parent)

    def _open(self) -> Any:
        """A second process cannot open the same folder, not even for reading."""
        started = time.monotonic()
        while True:
            try:
                with self._explained():
                    return self._edge.EdgeShard.load(str(self._folder))
            except RunError as error:
                if "WouldBlock" not in str(error):
                    raise
            if time.monotonic() - started > _PATIENCE:
                place = shown(self._folder.parent)
                raise InUse(f"{place}: in use by another process; wait for it to finish") from None
            time.sleep(0.05)

    def _check_space(self) -> None:
        free = shutil.disk_usage(self._folder.parent).free
        if free < _SPARE:
            need = f"{free >> 20} MB are free, {_SPARE >> 20} MB are needed"
            way = "free some space and run the same command again"
            raise RunError(f"{shown(self._folder)}: no space left on the disk ({need}); {way}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What its package raises, in one line; a panic of its own is no `Exception`."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            full = "No space left" in str(error) or "File too large" in str(error)
            way = "free some space and run the same command again" if full else "restore it, or index into a new folder"
            reason = " ".join(str(error).split())[:200]
            raise RunError(f"{shown(self._folder)}: failed ({reason}); {way}") from None

    def _config(self, width: int | None) -> Any:
        edge = self._edge
        dense = {_VECTOR: edge.EdgeVectorParams(size=width, distance=edge.Distance.Dot)} if width else {}
        no_graph = edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10)
        return edge.EdgeConfig(
            vectors=dense,
            sparse_vectors={_TERMS: edge.EdgeSparseVectorParams()},
            hnsw_config=no_graph,
            optimizers=edge.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=_THRESHOLD),
        )


def _try(folder: Path) -> None:
    """Open the store in another process first: with a wrong number in a file, its package takes the process with it."""
    code = "import sys, qdrant_edge; qdrant_edge.EdgeShard.load(sys.argv[1]).close()"
    way_out = "restore it, or index into a new folder"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL,
        )
    except subprocess.TimeoutExpired:
        fault = f"{shown(folder)}: not open after {_TRIAL:.0f} s, damaged if the machine is not busy"
        raise Damaged(fault, way_out) from None
    except OSError:  # no process can be started
        return
    if -done.returncode in _CRASHES:
        raise Damaged(f"{shown(folder)}: damaged, opening it would end the process", way_out)


def _package() -> Any:
    try:
        import qdrant_edge
    except ImportError:
        raise UserError("an index needs the qdrant-edge-py package: pip install 'seqloom[retrieve]'") from None
    return qdrant_edge
