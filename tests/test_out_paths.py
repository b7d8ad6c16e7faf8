"""Files that commands write: what cannot or must not be written is refused before the work, in one line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_cli import call

pytestmark = pytest.mark.usefixtures("own_cache")

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a run, its data and what is in the way."""
    shutil.copytree(GOLDEN / "runs" / "forecasting", tmp_path / "run")
    shutil.copy(GOLDEN / "data" / "series.csv", tmp_path / "data.csv")
    (tmp_path / "plain").write_text("a file")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to("data.csv")
    os.link(tmp_path / "data.csv", tmp_path / "hard.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


@pytest.mark.parametrize(
    "option, path, message",
    [
        ("--out", "", "empty; give a path"),
        ("--out", " ", "empty; give a path"),
        ("--out", "a\0.csv", "NUL"),
        ("--out", "new.csv/", "new.csv/ is a folder; give a file name"),
        ("--out", "folder.csv", "folder.csv: is a folder; give a file name"),
        ("--out", "pipe.csv", "pipe.csv: is not a regular file"),
        ("--out", "data.csv", "data.csv: is also --data"),
        ("--out", "link.csv", "link.csv: is also --data"),
        ("--out", "hard.csv", "hard.csv: is also --data"),
        ("--out", "run/metrics.jsonl", "run/metrics.jsonl: would change the files of run"),
        ("--out", "run/model/new.csv", "run/model/new.csv: would change the files of run"),
        ("--out", "plain/x.csv", "cannot write plain: a file of that name exists"),
        ("--out", "a" * 300 + ".csv", "File name too long"),
        ("--out", "/proc/x.csv", "/proc/x.csv"),
        ("--chart", "", "--chart: is empty; give a path"),
        ("--chart", "run/run.json", "let the name end in .html"),
        ("--chart", "chart.csv", "chart.csv: would be a web page; let the name end in .html"),
        ("--chart", "run/checkpoints/x.html", "would change the files of run"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(run: Any, place: Path, option: str, path: str, message: str) -> None:
    before = (place / "run" / "run.json").read_bytes(), (place / "data.csv").read_bytes()
    code, out, err = run("predict", "run", "--data", "data.csv", option, path)
    assert code in (1, 2) and not out
    assert message in err and err.count("\n") == 1 and len(err) < 500, err
    assert before == ((place / "run" / "run.json").read_bytes(), (place / "data.csv").read_bytes())


def test_two_outputs_are_two_files(run: Any, place: Path) -> None:
    code, _, err = run("predict", "run", "--data", "data.csv", "--out", "o.csv", "--chart", "./o.html")
    assert code == 0, err
    (place / "twin.html").symlink_to("o.csv")
    code, _, err = run("predict", "run", "--data", "data.csv", "--out", "o.csv", "--chart", "twin.html")
    assert code == 2 and "--out and --chart: both are o.csv; give two files" in err


def test_a_file_beside_those_of_a_run_is_the_users(run: Any, place: Path) -> None:
    for _ in range(2):  # a second time over its own
        assert run("predict", "run", "--data", "data.csv", "--out", "run/forecasts.csv")[0] == 0


@pytest.mark.parametrize(
    "words", [["explain", "run", "--text", "a"], ["merge", "run"], ["prompt", "run", "--data", "a"]]
)
def test_an_empty_name_is_refused(run: Any, words: list[str]) -> None:
    code, _, err = run(*words, "--out", "")
    assert code == 2 and "--out" in err and "empty; give a path" in err and err.count("\n") == 1


@pytest.mark.parametrize("command", ["eval", "predict", "generate", "explain", "merge"])
def test_an_empty_run_is_refused(run: Any, command: str) -> None:
    code, _, err = run(command, "")
    assert code == 2 and "RUN" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (["runs", "nowhere"], "nowhere: no such folder"),
        (["runs", ""], "no such folder"),
        (["samples", "sine"], "samples have no options"),
        (["studies", "x"], "studies have no options"),
        (["models", ""], "unknown model ''"),
        (["tasks", "../x"], "unknown task '../x'"),
    ],
)
def test_lists_refuse_names_that_they_do_not_have(run: Any, words: list[str], message: str) -> None:
    code, out, err = run("list", *words)
    assert code == 2 and not out and message in err
