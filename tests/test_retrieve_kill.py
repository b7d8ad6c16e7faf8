"""An index whose process is killed, again and again, becomes what it would have become without that."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from retrieve_toys import ToyEncoder, change_folder, content, write_folder

from seqloom.retrieve import encoder as encoders
from seqloom.retrieve.index import Index, index

SCRIPT = Path(__file__).parent / "killed_index.py"


def run(folder: Path, out: Path, seconds: float | None = None) -> tuple[float, bool]:
    """Index in another process, killed after so many seconds of indexing: how long it indexed, and whether it ended by
    itself."""
    command = [sys.executable, str(SCRIPT), str(folder), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "begun\n"
        started = time.monotonic()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        taken = time.monotonic() - started
        ended = process.stdout.read() == "done\n"
        assert ended or process.wait() == -9, "it failed"
    return taken, ended


def acknowledged(out: Path) -> set[tuple[Any, ...]]:
    """The documents that a reader finds."""
    if not (out / "catalogue.sqlite").exists():
        return set()
    with Index.open(out) as found:
        present = set(found._store.ids())
        rows = found._catalogue._rows(
            "SELECT path, sha256, chunks.id FROM documents JOIN chunks ON document = documents.id WHERE state = 1"
        )
        assert {row[2] for row in rows} <= present, "an acknowledged point is missing from the store"
        return {row[:2] for row in rows}


def kill_often(folder: Path, out: Path, rng: random.Random, kills: int, whole: float, lasting: set[Any]) -> int:
    """How many of the kills hit a process at work; what was acknowledged stays so. `lasting`: the documents that stand
    in the folder now; others may leave."""
    hits, before = 0, acknowledged(out) & lasting
    for _ in range(kills):
        _, ended = run(folder, out, rng.uniform(0, whole))
        now = acknowledged(out) & lasting
        assert before <= now
        before, hits = now, hits + (not ended)
        if ended:
            break
    return hits


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "load_encoder", lambda name: ToyEncoder())


def expected(folder: Path, out: Path) -> dict[str, Any]:
    with index(folder, out, encoder="toy", size=24) as found:
        return content(found)


def rounds(tmp_path: Path, seed: int, files: int, kills: int) -> int:
    """Kill the making of an index and then an update of it, and compare with an index that was left in peace."""
    rng, folder = random.Random(seed), tmp_path / "texts"
    write_folder(folder, files, seed)
    whole, _ = run(folder, tmp_path / "peace")
    hits = 0
    for update in (False, True):
        if update:
            change_folder(folder, seed)
        peace = expected(folder, tmp_path / "peace")
        hits += kill_often(folder, tmp_path / "index", rng, kills, whole, acknowledged(tmp_path / "peace"))
        run(folder, tmp_path / "index")
        assert expected(folder, tmp_path / "index") == peace, f"seed {seed}, update {update}"
    return hits


@pytest.mark.long
def test_a_killed_index_continues_and_equals_one_left_in_peace(tmp_path: Path, toy: None) -> None:
    rounds(tmp_path, 0, 12, 2)
