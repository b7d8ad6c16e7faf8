"""A pipe in place of a file is refused at once by every reader: it would be waited for without end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import seqloom
from seqloom.core.errors import UserError
from seqloom.runs.registry import names

KINDS = ["npz", "parquet", "csv", "tsv", "jsonl", "json", "conll", "txt", "csv.gz", "txt.xz", "txt.bz2"]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Ends the wait for a pipe, so that the test fails instead of the suite."""

    def stop(*_: object) -> None:
        raise TimeoutError("still waiting for the pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("task", [*names("tasks"), None])
@pytest.mark.parametrize("kind", KINDS)
def test_no_reader_waits_for_a_pipe(task: str | None, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a regular file"):
        seqloom.fit(task=task, model="gru", data=str(path), out=tmp_path / "run")
