"""`seqloom index` and `seqloom ask` with what people type by mistake, and with files that are not what they seem."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom import cli

QUESTION = "How long does the guarantee last?"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Command:
    """A command in a folder with an index: exit code, what it prints, and the last line on standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    Path("notes").mkdir()
    Path("notes/terms.txt").write_text("The guarantee lasts three years.\n")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seqloom", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, (said.err.splitlines() or [""])[-1]

    assert call("index", "notes", "--out", "i")[0] == 0
    return call


def test_a_folder_of_which_nothing_can_be_read_fails_with_the_reasons(run: Command) -> None:
    Path("bad").mkdir()
    Path("bad/a\n\x1b[31m.txt").write_bytes(b"\0\1")
    code, said, line = run("index", "bad", "--out", "bad.index")
    assert (code, line) == (1, "seqloom: bad: no document could be read; see the reasons above")
    assert "  a\\u000a\\u001b[31m.txt: a binary file" in said and "\x1b" not in said


def test_a_question_that_is_not_utf8_is_refused(run: Command) -> None:
    code, said, line = run("ask", "i", "guarantee \udcff lasts", "--json")
    assert code == 2 and not said and "is not valid Unicode text" in line


def test_a_question_of_grammar_alone_is_refused(run: Command) -> None:
    assert run("ask", "i", "the of and is")[1].startswith("no answer: ")
    Path("notes/b.txt").write_text("It is what it is.")
    run("index", "notes", "--out", "i")
    assert run("ask", "i", "What is it?")[1].startswith("no answer: the question has no words to search for")


def test_a_page_replaces_neither_a_device_nor_a_part_of_the_index(run: Command) -> None:
    os.mkfifo("pipe")
    assert "pipe: is not a regular file" in run("ask", "i", QUESTION, "--out", "pipe")[2]
    assert "index.json: lies inside of the index" in run("ask", "i", QUESTION, "--out", "i/index.json")[2]
    assert run("ask", "i", QUESTION)[0] == 0


def test_questions_from_a_pipe_do_not_wait_for_ever(run: Command) -> None:
    os.mkfifo("pipe")
    assert "pipe: not a regular file" in run("ask", "i", "--evaluate", "pipe")[2]
    assert (
        "pipe: not a regular file" in run("index", "notes", "--out", "i", "--evaluate", "pipe", "--judgements", "x")[2]
    )


def test_a_question_of_a_file_that_is_too_long_is_named_by_its_line(run: Command) -> None:
    rows = [{"question": QUESTION, "answers": ["three"]}, {"question": "a " * 3000, "answers": []}]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (
        "q.jsonl:2: the question has 6,000 characters; ask in at most 4,000"
        in run("ask", "i", "--evaluate", "q.jsonl")[2]
    )


def test_an_interrupt_says_so(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seqloom.retrieve.index.Index.open", interrupt)
    assert run("ask", "i", QUESTION)[::2] == (130, "seqloom: interrupted")
