"""The catalogue of an index, in SQLite: files, documents with their text, chunks, and in how many chunks a term occurs.

It is the record of what is acknowledged. A point is in the store only if its chunk is here, because a chunk is written
here first; and a document counts as indexed only once its points are on disk, because that is written here last:

    staged      its chunks are here, its points perhaps in the store: they are written again, which changes nothing
    live        its points are in the store
    leaving     live, but its file is gone or changed: found until its points are deleted
    gone        no longer found, because its new version is live or because it never was: its points are to be deleted

The number of chunks with a term is counted in the same transaction that makes a document live or forgets it; `counted`
says of a document whether its terms are in these numbers.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.core.errors import RunError
from seqloom.retrieve.document import Chunk, Document
from seqloom.retrieve.stored import chunk_id, facts_of, to_bytes, to_chunk, to_document, to_json
from seqloom.runs.durable import shown

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE files (
    name TEXT PRIMARY KEY, size INTEGER, modified INTEGER, sha256 BLOB, skipped TEXT, notes TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, file TEXT, path TEXT, key TEXT, sha256 BLOB, state INTEGER, counted INTEGER,
    about TEXT, text BLOB
) STRICT;
CREATE INDEX documents_by_path ON documents (path);
CREATE INDEX documents_by_file ON documents (file);
CREATE INDEX documents_to_do ON documents (state, id) WHERE state != 1;
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, document INTEGER, start INTEGER, end INTEGER, length INTEGER, headings TEXT, hidden INTEGER
) STRICT;
CREATE INDEX chunks_of_a_document ON chunks (document);
CREATE TABLE terms (id INTEGER PRIMARY KEY, chunks INTEGER) STRICT;
"""
_TOGETHER = 1.0  # seconds between the commits of joined transactions
_MANY = 500  # values in one statement


class State(IntEnum):
    staged = 0
    live = 1
    leaving = 2
    gone = 3


DOOMED = (State.leaving, State.gone)


class File(NamedTuple):
    """A file as it was when it was read."""

    name: str
    size: int
    modified: int  # nanoseconds; 0: not to be relied on
    sha256: bytes
    skipped: str | None = None  # why it could not be read
    notes: str = ""  # what of it could not be read


class Entry(NamedTuple):
    """A document, read and cut up, ready to be staged."""

    document: Document
    sha256: bytes
    chunks: Sequence[Chunk]
    lengths: Sequence[int]  # of the chunks, in terms


class Kept(NamedTuple):
    """A document of the catalogue with its chunks, to be indexed or deleted."""

    id: int
    counted: bool
    document: Document
    ids: list[int]  # of its chunks
    chunks: list[Chunk]


class Catalogue:
    def __init__(self, path: Path) -> None:
        self.path, new = path, not path.exists()
        self._joined, self._begun = False, 0.0
        with self._explained():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=10)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a commit is on disk
            self._db.execute("PRAGMA wal_autocheckpoint = 10000")
        if new or not self._rows("SELECT name FROM sqlite_schema WHERE name = 'facts'"):
            with self.transaction():
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written, or nothing; inside `together`, a little later."""
        with self._explained():
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
                self._begun = time.monotonic()
            try:
                yield
                if not self._joined or time.monotonic() - self._begun > _TOGETHER:
                    self._db.execute("COMMIT")
            except BaseException:
                self._undo()
                raise

    @contextmanager
    def together(self) -> Iterator[None]:
        """Transactions inside are joined to a few larger ones: each has to wait for the disk."""
        self._joined = True
        try:
            yield
            with self._explained():
                if self._db.in_transaction:
                    self._db.execute("COMMIT")
        finally:
            self._joined = False
            self._undo()

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def fact(self, name: str) -> Any:
        found = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return found[0][0] if found else None

    def set_fact(self, name: str, value: float | str) -> None:
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, value)])

    # files

    def files(self) -> dict[str, File]:
        return {row[0]: File(*row) for row in self._rows("SELECT * FROM files")}

    def file_of(self, path: str) -> File | None:
        """The file that a document was read from."""
        query = "SELECT * FROM files WHERE name IN (SELECT file FROM documents WHERE path = ? AND state IN (1, 2))"
        rows = self._rows(query, (path,))
        return File(*rows[0]) if rows else None

    def write_file(self, file: File) -> None:
        self._write("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", [file])

    def forget_file(self, name: str) -> None:
        """Its documents leave."""
        self.dismiss([id for id, _ in self.documents_of(name).values()])
        self._write("DELETE FROM files WHERE name = ?", [(name,)])

    # documents on their way in and out

    def documents_of(self, file: str) -> dict[tuple[str, bytes], tuple[int, State]]:
        """By path and hash: more than one version of a document may be here after a kill."""
        rows = self._rows("SELECT path, sha256, id, state FROM documents WHERE file = ?", (file,))
        return {(path, sha256): (id, State(state)) for path, sha256, id, state in rows}

    def stage(self, file: str, entries: Iterable[Entry]) -> None:
        for document, sha256, chunks, lengths in entries:
            row = (file, document.path, document.key, sha256, facts_of(document), to_bytes(document.text))
            insert = "INSERT INTO documents VALUES (NULL, ?, ?, ?, ?, 0, 0, ?, ?)"
            id = self._db.execute(insert, row).lastrowid
            self._write(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (chunk_id(sha256, n), id, c.start, c.end, length, to_json(c.headings), int(c.hidden))
                    for n, (c, length) in enumerate(zip(chunks, lengths, strict=True))
                ],
            )

    def stage_again(self, ids: Iterable[int]) -> None:
        """Documents that were to leave, but are wanted after all. Some of their points may be gone already."""
        self._write("UPDATE documents SET state = 0 WHERE id = ?", [(id,) for id in ids])

    def dismiss(self, ids: Iterable[int]) -> None:
        """Documents that are no longer wanted."""
        self._write("UPDATE documents SET state = ? WHERE id = ? AND state = ?", [
            (after, id, before)
            for id in ids
            for before, after in ((State.staged, State.gone), (State.live, State.leaving))
        ])  # fmt: skip

    def to_do(self, states: Sequence[State], most: int) -> list[Kept]:
        """The next documents in these states, with about `most` chunks."""
        marks = ",".join("?" * len(states))
        query = f"SELECT id, counted, path, key, about, text FROM documents WHERE state IN ({marks}) ORDER BY state, id"
        found, count = [], 0
        with self._explained():
            for id, counted, *rest in self._db.execute(query, [int(state) for state in states]):
                document = to_document(*rest)
                rows = self._rows("SELECT * FROM chunks WHERE document = ? ORDER BY start, id", (id,))
                chunks = [to_chunk(document.text[row[2] : row[3]], document, *row[2:]) for row in rows]
                found.append(Kept(id, bool(counted), document, [row[0] for row in rows], chunks))
                count += len(rows)
                if count >= most:
                    break
        return found

    def acknowledge(self, done: Sequence[Kept], terms: Counter[int]) -> None:
        """The points of staged documents are on disk; `terms`: in how many chunks each occurs, of those documents that
        are not counted yet."""
        self._count(terms, sum(len(kept.ids) for kept in done if not kept.counted))
        self._write("UPDATE documents SET state = 1, counted = 1 WHERE id = ?", [(kept.id,) for kept in done])
        replaced = "UPDATE documents SET state = 3 WHERE path = ? AND state = 2"
        self._write(replaced, [(kept.document.path,) for kept in done])

    def forget(self, done: Sequence[Kept], terms: Counter[int]) -> None:
        """The points of doomed documents are gone; `terms`: in how many chunks each occurs, of those that are
        counted."""
        self._count(Counter({id: -n for id, n in terms.items()}), -sum(len(kept.ids) for kept in done if kept.counted))
        self._write("DELETE FROM chunks WHERE document = ?", [(kept.id,) for kept in done])
        self._write("DELETE FROM documents WHERE id = ?", [(kept.id,) for kept in done])

    def _count(self, terms: Counter[int], chunks: int) -> None:
        self._write(
            "INSERT INTO terms VALUES (?, ?) ON CONFLICT DO UPDATE SET chunks = chunks + excluded.chunks",
            sorted(terms.items()),
        )
        if chunks < 0:
            self._db.execute("DELETE FROM terms WHERE chunks <= 0")
        self.set_fact("points", self.points + chunks)

    # what a search needs

    @property
    def points(self) -> int:
        """Chunks whose terms are counted."""
        return int(self.fact("points") or 0)

    def mean_length(self) -> float:
        """Of all chunks that are or will be found, in terms."""
        query = "SELECT avg(length) FROM chunks JOIN documents ON document = documents.id WHERE state IN (0, 1)"
        return float(self._rows(query)[0][0] or 0.0)

    def frequencies(self, terms: Sequence[int]) -> dict[int, int]:
        """In how many chunks each term occurs; terms that occur in none are left out."""
        return dict(self._among("SELECT id, chunks FROM terms WHERE id IN ({})", terms))

    def found(self, ids: Sequence[int]) -> dict[int, Chunk]:
        """The chunks behind points, without those that are not to be found."""
        query = (
            "SELECT chunks.id, document, start, end, length, chunks.headings, hidden FROM chunks JOIN documents "
            "ON document = documents.id WHERE state IN (1, 2) AND chunks.id IN ({})"
        )
        rows = self._among(query, [id for id in ids if id < 1 << 63])  # larger ones come from a damaged store
        select = "SELECT id, path, key, about, text FROM documents WHERE id IN ({})"
        with self._explained():
            documents = {id: to_document(*rest) for id, *rest in self._among(select, sorted({row[1] for row in rows}))}
        return {row[0]: to_chunk(documents[row[1]].text[row[2] : row[3]], documents[row[1]], *row[2:]) for row in rows}

    def document(self, path: str) -> Document | None:
        query = "SELECT path, key, about, text FROM documents WHERE path = ? AND state IN (1, 2) ORDER BY state"
        with self._explained():
            rows = self._rows(query, (path,))
            return to_document(*rows[0]) if rows else None

    def keys(self) -> dict[str, str]:
        """The key of every document that has one, by its path."""
        return dict(self._rows("SELECT path, key FROM documents WHERE state IN (1, 2) AND key != ''"))

    def paths(self) -> list[str]:
        return [path for (path,) in self._rows("SELECT path FROM documents WHERE state IN (1, 2) ORDER BY path")]

    def tally(self, states: Sequence[State]) -> tuple[int, int]:
        """The number of documents in these states, and of their chunks."""
        among = ",".join(str(int(state)) for state in states)
        documents = self._rows(f"SELECT count(*) FROM documents WHERE state IN ({among})")[0][0]
        joined = "chunks JOIN documents ON document = documents.id"
        return documents, self._rows(f"SELECT count(*) FROM {joined} WHERE state IN ({among})")[0][0]

    def _among(self, query: str, values: Sequence[Any]) -> list[Any]:
        """The rows of a query with IN ({}), however many values there are."""
        parts = [values[n : n + _MANY] for n in range(0, len(values), _MANY)]
        return [row for part in parts for row in self._rows(query.format(",".join("?" * len(part))), part)]

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._explained():
            return self._db.execute(query, values).fetchall()

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(statement, rows)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if "disk is full" in str(error) or shutil.disk_usage(self.path.parent).free < 1 << 20:
                way = "free some space and run the same command again"
            else:
                way = "restore the file, or index into a new folder"
            raise RunError(f"{shown(self.path)}: {error}; {way}") from error
