"""Words of a command line that nobody means, and terminals that are none: refused in one line, or harmless."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqloom import cli

REFUSED = [
    ("fit --data a.csv --data b.csv", "--data: given more than once, but only one is read; leave the others out"),
    ("index d --out --encoder none", "--out: has no value, --encoder follows; if it is meant, write --out=--encoder"),
    ("index d --out -- --encoder", "--out: has no value, -- follows"),
    ("fit -o -o train.steps=3", "-o: has no value, -o follows"),
    ("ask i q -k --json", "-k: has no value, --json follows"),
    ("index d --out ''", "--out: is empty; give a path"),
    ("index d --out=", "--out: is empty; give a path"),
    ("index '' --out i", "FOLDER: is empty; give a path"),
    ("predict ' ' --text x", "RUN: is empty; give a path"),
    ("explain run '' --text x", "is empty; give a path"),
    ("ask i q --out -", "--out -: not standard input or output here; give a name, ./- for a file named so"),
    ("compare --data a.csv --valid ''", "--valid: is empty; give a value, or leave the option out"),
    ("fit --task '' --data a.csv", "--task: is empty; give a value, or leave the option out"),
    ("fit --data ' '", "--data: is empty; give a value, or leave the option out"),
    ("ask i q --out a.pdf", "a.pdf: would be a web page; let the name end in .html"),
]


@pytest.mark.parametrize("words, said", REFUSED)
def test_words_that_nobody_means_are_refused_in_one_line(words, said, monkeypatch, capsys, tmp_path):
    import shlex

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["seqloom", *shlex.split(words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.count("\n") == 1 and said in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["list tasks --json --json", "-- list tasks", "list -- tasks"])
def test_words_that_are_meant_are_taken(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["seqloom", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code and "classification" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["merge r --out run", "serve r --runs runs", "generate r --prompt run"])
def test_a_value_may_be_the_name_of_an_argument(words, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["seqloom", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code and "not a run folder" in said, said


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_is_not_missed(closed, tmp_path):
    command = f"{sys.executable} -m seqloom index {tmp_path} --out {tmp_path / 'index'} --encoder none {closed}"
    (tmp_path / "a.txt").write_text("The frog eats fish.\n")
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 0
    assert (tmp_path / "index/catalogue.sqlite").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("width", ["0", "1", "-5", "x", "²", "100000000"])
def test_a_width_that_no_terminal_has_is_not_believed(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr(sys, "argv", ["seqloom", "list", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().out
    assert "Usage" in said and max(map(len, said.splitlines())) < 500
    assert "COLUMNS" not in os.environ


def test_a_word_without_end_is_cut_so_that_the_rest_can_be_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["seqloom", "ask", "x" * 250 + "/" + "y" * 5000, "q"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    assert end.value.code in (1, 2) and len(error) < 700 and error.startswith("seqloom: " + "x" * 250)


def test_an_error_has_its_code_though_the_disk_behind_standard_error_is_full():
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run([sys.executable, "-m", "seqloom", "list", "nope"], stderr=full).returncode == 2
