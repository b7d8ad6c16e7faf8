"""Scores on data that a run has seen come with a warning."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from support import small_fit, text

from seqloom import cli
from seqloom.data.fingerprint import fingerprint
from seqloom.runs.folder import RunFolder
from seqloom.runs.run import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`split` held out a tenth of its file; `given` was validated on another file."""
    place = tmp_path_factory.mktemp("seen")
    for seed, name in enumerate(("book", "other", "new")):
        (place / f"{name}.txt").write_text(text(3000, seed))
    small_fit(place / "book.txt", place / "split", "gru", ["train.steps=2"])
    small_fit(place / "book.txt", place / "given", "gru", ["train.steps=2"], valid=str(place / "other.txt"))
    return place


def scored(
    folder: Path, run: str, data: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, object], str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", "eval", str(folder / run), "--data", str(folder / data), "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_scores_on_the_training_file_come_with_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(folder / "book.txt", folder / "copy.txt")
    for run in ("split", "given"):
        for data in ("book.txt", "copy.txt"):
            scores, err = scored(folder, run, data, monkeypatch, capsys)
            assert scores["trained_on"] is True and scores["selected_on"] is False
            assert (
                err == f"warning: this run was trained on {folder / data}; its scores there say little about new data\n"
            )


def test_scores_on_the_validation_file_come_with_a_weaker_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, err = scored(folder, "given", "other.txt", monkeypatch, capsys)
    assert scores["trained_on"] is False and scores["selected_on"] is True and "was selected on" in err


def test_scores_on_new_data_come_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, err = scored(folder, "split", "new.txt", monkeypatch, capsys)
    assert scores["trained_on"] is False and scores["selected_on"] is False and not err


def test_a_run_that_recorded_no_fingerprints_knows_its_files_by_path_or_content(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "given", tmp_path / "old")
    old = RunFolder(tmp_path / "old")
    record = old.record()
    for part in record["data"].values():
        del part["file"]
    old.write_record(record)
    run = load(old.path)
    shutil.copy(folder / "book.txt", tmp_path / "same.txt")
    files = [folder / "book.txt", folder / "other.txt", tmp_path / "same.txt", folder / "new.txt"]
    found = [run.evaluate(str(file)) for file in files]
    assert [scores["trained_on"] for scores in found] == [True, False, True, False]
    assert [scores["selected_on"] for scores in found] == [False, True, False, False]


def test_a_fingerprint_is_that_of_the_bytes(folder: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a,b.txt", tmp_path / "b.txt"
    a.write_text("one")
    b.write_text("two")
    pair = fingerprint(f"{b},{b}")
    assert fingerprint(str(a)) != fingerprint(str(b)) and pair not in (None, fingerprint(str(b)))
    assert fingerprint(str(tmp_path)) not in (None, pair) and fingerprint("sample:sine") == "sample:sine"
    assert fingerprint(str(tmp_path / "nowhere")) is None


def test_a_pipe_or_a_device_has_no_identity(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    assert fingerprint(str(tmp_path / "pipe")) is None and fingerprint(str(tmp_path / "zeros")) is None
