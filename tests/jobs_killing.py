"""Submit jobs with keys while the server is killed again and again: C14 of the serving faults."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from support import text

from seqloom.serve.jobs.children import MARK
from seqloom.serve.jobs.store import FILE
from seqloom.serve.jobs.uploads import Uploads

HOST = [sys.executable, str(Path(__file__).parent / "jobs_host.py")]
REAL = {"kind": "fit", "model": "gru", "task": "language_model", "budget": "steps=20", "seed": 1}
QUICK = {"kind": "compare", "data": "sample:sine", "models": ["gru"]}


class Campaign:
    """`jobs` orders, of which the first `real` train, with `kills` of the server in between."""

    def __init__(self, folder: Path, jobs: int, real: int, kills: int) -> None:
        self.folder, self.kills, self.rng = folder, kills, random.Random(0)
        upload = self._upload()
        orders = [REAL | {"data": f"upload:{upload}"} for _ in range(real)] + [QUICK] * (jobs - real)
        self.orders = [order | {"key": f"key-{number}"} for number, order in enumerate(orders)]
        self.rng.shuffle(self.orders)
        self.known: dict[str, set[str]] = {order["key"]: set() for order in self.orders}
        self.killed = 0

    def run(self, seconds: float) -> None:
        """Until every order has been taken on and every job has ended."""
        until = time.monotonic() + seconds
        while not self.finished():
            assert time.monotonic() < until, self.states()
            host = self._start()
            try:
                self._submit(host)
                if self.killed < self.kills:
                    time.sleep(self.rng.uniform(0.0, 0.6))
                while self.killed >= self.kills and not self.finished() and time.monotonic() < until:
                    time.sleep(0.1)
            finally:
                host.kill()
                host.wait()
            self.killed += self.killed < self.kills

    def finished(self) -> bool:
        ended = {"done", "failed", "cancelled"}
        return all(self.known.values()) and len(self.rows()) == len(self.orders) and set(self.states()) <= ended

    def states(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in self.rows():
            found[row["state"]] = found.get(row["state"], 0) + 1
        return found

    def rows(self) -> list[dict[str, Any]]:
        """As they are on the disk."""
        path = self.folder / "state" / FILE
        if not path.exists():
            return []
        base = sqlite3.connect(path, timeout=10)
        base.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in base.execute("SELECT * FROM jobs")]
        except sqlite3.OperationalError:  # killed before its tables were made
            return []
        finally:
            base.close()

    def left(self) -> list[str]:
        """Processes that a job of this campaign has started, and that are still there."""
        store = sqlite3.connect(self.folder / "state" / FILE)
        mark = f"{MARK}={store.execute('SELECT value FROM facts').fetchone()[0]}".encode()
        store.close()
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError):
                found += [name] if mark in Path("/proc", name, "environ").read_bytes().split(b"\0") else []
        return found

    def _start(self) -> subprocess.Popen[str]:
        host = subprocess.Popen(
            [*HOST, str(self.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert host.stdout and host.stdout.readline() == "ready\n"
        return host

    def _submit(self, host: subprocess.Popen[str]) -> None:
        """Some that are not known yet, and some that are; the answer to the last is not waited for."""
        assert host.stdin and host.stdout
        new = [order for order in self.orders if not self.known[order["key"]]]
        most = len(new) if self.killed >= self.kills else max(1, len(self.orders) // self.kills)
        chosen = new[:most] + self.rng.sample(self.orders, 2)
        for place, order in enumerate(chosen):
            host.stdin.write(json.dumps(order) + "\n")
            if place == len(chosen) - 1 and self.killed < self.kills:
                return
            self.known[order["key"]].add(json.loads(host.stdout.readline())["id"])

    def _upload(self) -> str:
        book = Uploads(self.folder / "state" / "uploads").begin("book.txt")
        book.write(text(3000).encode())
        return str(book.finish()["id"])


def check(campaign: Campaign, real: int) -> None:
    """Every order is one job, every job ended once and did its work once, and nothing is left."""
    rows = {row["key"]: row for row in campaign.rows()}
    assert campaign.states() == {"done": len(campaign.orders)}
    assert rows.keys() == campaign.known.keys() == {order["key"] for order in campaign.orders}
    for key, ids in campaign.known.items():
        assert ids == {rows[key]["id"]}
    runs = campaign.folder / "runs" / "jobs"
    assert {path.name for path in runs.iterdir()} == {row["id"] for row in rows.values()}
    trained = [row for row in rows.values() if row["kind"] == "fit"]
    assert len(trained) == real
    for row in rows.values():
        done = "summary.json" if row["kind"] == "fit" else "finished"
        assert (runs / row["id"] / "run" / done).exists() and row["code"] == 0 and row["ended"]
    assert not campaign.left()
