"""Jobs in SQLite: what was asked for, how far it is, how it ended.

A job that has ended stays as it is: the database itself refuses to change its state. What was running when the server
died is queued again by `recover`; doing it again is safe, because `fit` and `compare` continue where they were and do
nothing when they had finished. One server at a time has the store, which a lock makes sure of.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.errors import RunError, UserError
from seqloom.core.rows import Json
from seqloom.runs.durable import shown
from seqloom.runs.lock import locked
from seqloom.serve.jobs.request import Order, told

FILE = "jobs.sqlite"
ID = re.compile(r"[0-9a-f]{16}")
ENDED = ("done", "failed", "cancelled")
LINES = 400  # of a job that are kept
_LONGEST = 500  # characters of a line, and of a message
_WAITING = 1000  # jobs in the queue

_TABLES = f"""
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  key TEXT UNIQUE,
  kind TEXT NOT NULL,
  asked TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  stopping INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  created REAL NOT NULL,
  started REAL,
  ended REAL,
  code INTEGER,
  message TEXT
);
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, number);
CREATE TABLE IF NOT EXISTS lines (
  job INTEGER NOT NULL REFERENCES jobs (number), number INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (job, number)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS ended_once BEFORE UPDATE OF state ON jobs WHEN OLD.state IN {ENDED}
BEGIN SELECT RAISE(ABORT, 'this job has ended'); END;
"""


class Conflict(UserError):
    """The key belongs to another job."""


class Crowded(UserError):
    """Too many jobs are waiting."""


@dataclass(frozen=True)
class Job:
    number: int
    id: str
    kind: str
    asked: Json
    state: str
    stopping: bool
    attempts: int
    created: float
    started: float | None
    ended: float | None
    code: int | None
    message: str | None

    @property
    def order(self) -> Order:
        return Order.model_validate(self.asked)


_COLUMNS = ", ".join(Job.__dataclass_fields__)


class Store:
    """`folder`: of the server's state, made if needed. Every method may be called from any thread, and raises
    sqlite3.OperationalError while the disk is full or cannot be written; nothing has changed then."""

    def __init__(self, folder: Path) -> None:
        self._mutex = threading.RLock()
        self._held = ExitStack()
        self._held.enter_context(locked(folder))
        try:
            self._open(folder / FILE)
        except BaseException:
            self._held.close()
            raise

    def close(self) -> None:
        with self._mutex:
            self._base.close()
            self._held.close()

    @property
    def name(self) -> str:
        """The same for this store for ever: marks the processes that were started for it."""
        return str(self._base.execute("SELECT value FROM facts WHERE name = 'store'").fetchone()[0])

    def submit(self, order: Order, id: str) -> tuple[Job, bool]:
        """The job, and whether it is new: the same key again is the same job."""
        asked = json.dumps(told(order), sort_keys=True)
        with self._writing():
            if order.key and (known := self._one("key = ?", order.key)):
                if json.dumps(known.asked, sort_keys=True) != asked:
                    raise Conflict("key: belongs to another job, with other fields; give a new one")
                return known, False
            if self._count("queued") >= _WAITING:
                raise Crowded(f"{_WAITING:,} jobs are waiting; cancel some, or try again when they have ended")
            values = (id, order.key, order.kind, asked, time.time())
            self._base.execute("INSERT INTO jobs (id, key, kind, asked, created) VALUES (?, ?, ?, ?, ?)", values)
            job = self._one("id = ?", id)
            assert job
            return job, True

    def by_key(self, key: str) -> Job | None:
        with self._mutex:
            return self._one("key = ?", key)

    def job(self, id: str) -> Job | None:
        with self._mutex:
            return self._one("id = ?", id) if ID.fullmatch(id) else None

    def jobs(self, most: int = 200) -> list[Job]:
        """The latest first."""
        with self._mutex:
            rows = self._base.execute(f"SELECT {_COLUMNS} FROM jobs ORDER BY number DESC LIMIT ?", (most,))
            return [_job(row) for row in rows]

    def ids(self) -> set[str]:
        with self._mutex:
            return {row[0] for row in self._base.execute("SELECT id FROM jobs")}

    def take(self) -> Job | None:
        """The job that has waited longest, which runs from now on; None if none waits."""
        with self._writing():
            job = self._one("state = 'queued' ORDER BY number LIMIT 1")
            if job is None:
                return None
            change = "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 WHERE number = ?"
            self._base.execute(change, (time.time(), job.number))
            return self._one("number = ?", job.number)

    def again(self, number: int) -> None:
        """Queue a running job again, in its old place."""
        with self._writing():
            self._base.execute("UPDATE jobs SET state = 'queued' WHERE number = ? AND state = 'running'", (number,))

    def end(self, number: int, state: str, code: int | None, message: str | None) -> None:
        with self._writing():
            values = (state, time.time(), code, message[:_LONGEST] if message else None, number)
            self._base.execute("UPDATE jobs SET state = ?, ended = ?, code = ?, message = ? WHERE number = ?", values)

    def stop(self, id: str) -> Job | None:
        """Cancel: a waiting job ends now; a running one is marked, and its runner ends it."""
        with self._writing():
            job = self.job(id)
            if job and job.state == "queued":
                self.end(job.number, "cancelled", None, None)
            if job and job.state == "running":
                self._base.execute("UPDATE jobs SET stopping = 1 WHERE number = ?", (job.number,))
            return self.job(id)

    def recover(self) -> int:
        """After a server that was killed: what was running waits again. How many there were."""
        with self._writing():
            for job in self._all("state = 'running' AND stopping = 1"):
                self.end(job.number, "cancelled", None, None)
            return self._base.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running'").rowcount

    def say(self, number: int, text: str) -> None:
        """Keep a line of progress, and forget the oldest."""
        with self._writing():
            last = self._base.execute("SELECT max(number) FROM lines WHERE job = ?", (number,)).fetchone()[0] or 0
            self._base.execute("INSERT INTO lines VALUES (?, ?, ?)", (number, last + 1, text[:_LONGEST]))
            self._base.execute("DELETE FROM lines WHERE job = ? AND number <= ?", (number, last + 1 - LINES))

    def lines(self, number: int, after: int = 0) -> list[tuple[int, str]]:
        """Those after this one, with their numbers."""
        with self._mutex:
            wanted = "SELECT number, text FROM lines WHERE job = ? AND number > ? ORDER BY number"
            return list(self._base.execute(wanted, (number, min(after, 2**62))))

    def last_lines(self, number: int, most: int = 20) -> list[str]:
        with self._mutex:
            wanted = "SELECT text FROM lines WHERE job = ? ORDER BY number DESC LIMIT ?"
            return [row[0] for row in self._base.execute(wanted, (number, most))][::-1]

    def _open(self, path: Path) -> None:
        try:
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 5000", "foreign_keys = ON"):
                self._base.execute(f"PRAGMA {pragma}")
            found = self._base.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)
            self._base.executescript(_TABLES)
            fresh = ("store", secrets.token_hex(16))
            self._base.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", fresh)
        except sqlite3.OperationalError as error:
            raise RunError(f"cannot write {shown(path)}: {error}; free some space, or choose another folder") from error
        except sqlite3.DatabaseError as error:
            way_out = "move it away; the results of its jobs stay in the folder of runs"
            raise RunError(f"{shown(path)}: damaged ({str(error)[:80]}); {way_out}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: on an error nothing of it stays."""
        with self._mutex:
            if self._base.in_transaction:  # a part of another one
                yield
                return
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    def _count(self, state: str) -> int:
        return int(self._base.execute("SELECT count(*) FROM jobs WHERE state = ?", (state,)).fetchone()[0])

    def _one(self, where: str, *values: object) -> Job | None:
        return next(iter(self._all(where, *values)), None)

    def _all(self, where: str, *values: object) -> list[Job]:
        return [_job(row) for row in self._base.execute(f"SELECT {_COLUMNS} FROM jobs WHERE {where}", values)]


def _job(row: tuple[object, ...]) -> Job:
    facts = dict(zip(Job.__dataclass_fields__, row, strict=True))
    return Job(**facts | {"asked": json.loads(str(facts["asked"])), "stopping": bool(facts["stopping"])})  # type: ignore[arg-type]
