"""A server as a user starts it, with real models: the trained runs of tests/golden, and an index."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serve_toys import Reply

from seqloom.core.version import VERSION

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden" / "runs"


class Served:
    """In `folder`, with its log, its runs, its token and its cache."""

    def __init__(self, folder: Path, runs: Sequence[str], *options: str) -> None:
        """`runs`: names of golden runs, which may be followed by another name for the folder: tagging=名字."""
        self.folder, self.log = folder, folder / "log.txt"
        places = []
        for each in runs:
            kind, _, name = each.partition("=")
            shutil.copytree(GOLDEN / kind, folder / "runs" / (name or kind))
            places.append(f"runs/{name or kind}")
        kept = folder / "runs" / ".serve" / f"choices-{VERSION}.json"  # finding them out takes long
        kept.parent.mkdir()
        kept.write_text(json.dumps({"tasks": [], "models": [], "samples": [], "budgets": {}}))
        self.words = [sys.executable, "-m", "seqloom", "serve", *places, "--port=0", "--threads=1", *options]
        self.start()

    def start(self) -> None:
        own = {"PYTHONPATH": str(ROOT), "SEQLOOM_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.words, cwd=self.folder, env=os.environ | own, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout
        self.line = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)/#token=(\S+)", self.line)
        assert found, self.said()
        self.port, self.token = int(found[1]), found[2]

    def ask(self, method: str, path: str, body: Any = None, raw: bytes | None = None, **headers: str) -> Reply:
        wire = HTTPConnection("127.0.0.1", self.port, timeout=120)
        kind = {} if body is None else {"Content-Type": "application/json"}
        data = raw if body is None else json.dumps(body).encode()
        try:
            wire.request(method, path, data, {"Authorization": f"Bearer {self.token}", **kind, **headers})
            found = wire.getresponse()
            return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            wire.close()

    def post(self, path: str, **body: Any) -> Reply:
        return self.ask("POST", path, body)

    def model(self, name: str, op: str, **body: Any) -> Reply:
        return self.post(f"/api/models/{quote(name, safe='')}/{op}", **body)

    def upload(self, name: str, data: bytes) -> Reply:
        return self.ask("POST", f"/api/uploads?name={quote(name)}", raw=data)

    def text(self, prompt: str, tokens: int, model: str = "language_model") -> str:
        """Greedy."""
        found = self.post("/v1/completions", model=model, prompt=prompt, max_tokens=tokens, temperature=0)
        assert found.status == 200, found
        return str(found.json()["choices"][0]["text"])

    @property
    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def resident(self) -> int:
        """Bytes of memory of the HTTP process."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def handles(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def said(self) -> str:
        return self.line + self.log.read_text(errors="replace")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            self.process.communicate()


def settled(read: Any, seconds: float = 10) -> Any:
    """A value that has stopped to change."""
    until, before = time.monotonic() + seconds, read()
    while time.monotonic() < until:
        time.sleep(0.2)
        if (now := read()) == before:
            break
        before = now
    return before
