"""/api/uploads: files of others, counted while they arrive, kept apart, and gone after a while."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_desk import Desk, client
from starlette.testclient import TestClient

from seqloom.runs import durable
from seqloom.serve.api.past import Past
from seqloom.serve.jobs.uploads import Uploads, cleaned


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "state" / "uploads", largest=3_000_000, total=5_000_000)


@pytest.fixture
def desk(tmp_path: Path, uploads: Uploads) -> TestClient:
    return client(Desk(Past(tmp_path / "runs"), uploads, None))


def send(desk: TestClient, content: Any, name: str = "rows.csv") -> Any:
    return desk.post("/api/uploads", params={"name": name}, content=content)


def in_parts(size: int, read: list[int] | None = None) -> Iterator[bytes]:
    """A body that does not say how long it is."""
    for number in range(size // 100_000):
        if read is not None:
            read.append(number)
        yield b"x" * 100_000


def test_a_file_is_kept_as_it_was_sent(desk: TestClient, uploads: Uploads) -> None:
    sent = send(desk, "评论,标签\n好,1\n".encode())
    found = sent.json()
    assert sent.status_code == 201 and (found["name"], found["bytes"]) == ("rows.csv", 20)
    path = uploads.path(found["id"])
    assert path and path.read_bytes() == "评论,标签\n好,1\n".encode()
    assert desk.get(f"/api/uploads/{found['id']}").json() == found
    assert desk.get("/api/uploads").json() == {"uploads": [found]}


def test_a_deleted_file_is_gone(desk: TestClient, uploads: Uploads) -> None:
    id = send(desk, b"x").json()["id"]
    assert desk.delete(f"/api/uploads/{id}").status_code == 204
    assert desk.delete(f"/api/uploads/{id}").status_code == 404
    assert desk.get(f"/api/uploads/{id}").status_code == 404 and not list(uploads.folder.iterdir())


@pytest.mark.parametrize("declared", [True, False])
def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(
    desk: TestClient, uploads: Uploads, declared: bool
) -> None:
    sent = send(desk, b"x" * 3_000_001 if declared else in_parts(4_000_000))
    assert sent.status_code == 413 and "3 MB" in sent.text
    assert not uploads.folder.exists() or not list(uploads.folder.iterdir())


def test_all_files_together_have_a_limit(desk: TestClient, uploads: Uploads) -> None:
    assert [send(desk, in_parts(2_000_000)).status_code for _ in range(3)] == [201, 201, 507]
    assert uploads.taken() == 4_000_000 and len(list(uploads.folder.iterdir())) == 2


def test_an_empty_file_is_refused(desk: TestClient, uploads: Uploads) -> None:
    assert send(desk, b"").status_code == 400 and not list(uploads.folder.iterdir())


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("rows.csv", "rows.csv"), ("../../etc/passwd", "passwd"), ("C:\\data\\rows.csv", "rows.csv"), ("", "data"),
        ("..", "data"), (".bashrc", "bashrc"), ("--out=x.csv", "out_x.csv"), ("a,b.txt", "a_b.txt"),
        ("sample:sine", "sample_sine"), ("评论 (1).jsonl", "评论 (1).jsonl"), ("a\x00b\nc.csv", "a_b_c.csv"),
        ("<script>.html", "script_.html"), ("x" * 300 + ".parquet", "x" * 93 + ".parquet"), ("\ud800.csv", "csv"),
        ("\u202egnp.exe", "gnp.exe"), ("字" * 300 + ".csv", "字" * 60 + ".csv"),
    ],
)  # fmt: skip
def test_names_are_cleaned(name: str, kept: str, tmp_path: Path) -> None:
    assert cleaned(name) == kept and cleaned(cleaned(name)) == kept
    (tmp_path / kept).write_text("")
    assert [path.name for path in tmp_path.iterdir()] == [kept]


def test_old_files_expire_and_so_does_what_was_left_half_way(desk: TestClient, uploads: Uploads) -> None:
    old, new = (send(desk, b"x").json()["id"] for _ in range(2))
    left = uploads.folder / ".arriving-0123"
    left.mkdir()
    before = time.time() - 8 * 86_400
    for place in (uploads.folder / old, left):
        os.utime(place, (before, before))
    assert [found["id"] for found in desk.get("/api/uploads").json()["uploads"]] == [new]
    assert [path.name for path in uploads.folder.iterdir()] == [new]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_is_said_and_the_next_file_arrives(
    desk: TestClient, uploads: Uploads, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number), str(uploads.folder))

    for place, name in ((durable, "write_all"), (os, "mkdir"), (os, "rename")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, full)
            sent = send(desk, b"x")
        assert sent.status_code == 507 and str(uploads.folder) not in sent.text, name
    assert send(desk, b"x").status_code == 201
    assert len(list(uploads.folder.iterdir())) == 1
