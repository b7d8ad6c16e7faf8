"""Files that a command keeps about its own work: what was damaged is refused with the way out, or done again."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom.compare import record
from seqloom.core.errors import UserError
from seqloom.lab.crew import check_jobs
from seqloom.lab.rules import Budget, Margin
from seqloom.retrieve.index import index
from seqloom.runs.durable import Damaged
from seqloom.runs.folder import RunFolder
from seqloom.runs.kept import MADE_BY, Facts, check_own, read_json, write_json
from seqloom.runs.winner import winner


class Kept(Facts):
    number: int
    names: list[str] = []


VALUE = {"number": 1, "names": ["a", "\udcff", "中"], "share": 0.1}


def edited(path: Path) -> None:
    path.write_text(path.read_text().replace('"number": 1', '"number": 2'))


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (text(""), "not valid JSON"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-20]), "not valid JSON"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe\x00"), "not valid JSON"),
    "a list": (text("[1]"), "not a JSON object"),
    "nested": (text("[" * 100_000), "nested too deeply"),
    "digits": (text('{"number": ' + "9" * 5000 + "}"), "not valid JSON"),
    "infinite": (text('{"number": 1, "share": 1e400}'), "a number that is not finite"),
    "edited": (edited, "changed after it was written"),
    "a key missing": (text("{}"), "number: field required"),
    "of another type": (text('{"number": "1"}'), "number: input should be a valid integer"),
    "a seal of another type": (text('{"number": 1, "seal": 7}'), "changed after it was written"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "is a directory"),
    "a pipe": (piped, "not a regular file"),
    "a device": (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), "not a regular file"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_named_with_the_reason_and_the_way_out(what, tmp_path):
    path = tmp_path / "kept.json"
    write_json(path, VALUE)
    assert read_json(path, Kept, "") == VALUE
    spoil, said = DAMAGE[what]
    spoil(path)
    with pytest.raises(Damaged, match=said) as error:
        read_json(path, Kept, "delete it")
    assert str(path) in str(error.value) and str(error.value).endswith("; delete it")


@pytest.mark.parametrize("place", ["missing.json", "kept.json/in-a-file.json", "x" * 300])
def test_what_is_not_there_is_nothing(place, tmp_path):
    write_json(tmp_path / "kept.json", VALUE)
    assert read_json(tmp_path / place, Kept, "") is None


@pytest.mark.parametrize("file", MADE_BY)
def test_nothing_is_written_into_the_folder_of_something_else(file, tmp_path):
    (tmp_path / file).touch()
    check_own(tmp_path, file)
    for other in {*MADE_BY, "markov_order.json"} - {file}:
        with pytest.raises(UserError, match=f"is the folder of {MADE_BY[file]}, not of .*; choose another --out"):
            check_own(tmp_path, other)


@pytest.mark.parametrize("name", ["model/notes.txt", "metrics.jsonl", "thesis.tex"])
@pytest.mark.parametrize("file", MADE_BY)
def test_nothing_is_written_among_files_of_the_user(file, name, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(UserError, match=r"not empty, and not the folder of .*; choose another --out"):
        check_own(tmp_path, file)
    check_own(tmp_path, "markov_order.json")  # a study adds its file to others
    (tmp_path / ".lock").touch()  # a command that was killed before it wrote the file
    check_own(tmp_path, file)


def test_hidden_files_do_not_make_a_folder_that_of_something_else(tmp_path):
    (tmp_path / ".gitignore").touch()
    for file in MADE_BY:
        check_own(tmp_path, file)


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "not valid JSON"),
        ('{"plan": 1}', "plan: must be an object"),
        ('{"budgets": {"tokens=1": {"runs": 7}}}', "budgets.tokens=1.runs: input should be a valid string"),
    ],
)
def test_a_damaged_record_of_a_comparison_says_what_to_delete(content, said, tmp_path):
    (tmp_path / "comparison.json").write_text(content)
    with pytest.raises(Damaged, match=said) as error:
        record.known(RunFolder(tmp_path))
    assert "delete it and run the same command again, which keeps the finished runs" in str(error.value)


@pytest.mark.parametrize("entries", [7, [1], [{"name": "a", "runs": [{"state": 1}]}]])
def test_a_result_of_another_form_recommends_nothing(entries, tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"entries": entries}))
    with pytest.raises(Damaged, match="run the comparison's command again, which rewrites it"):
        winner(tmp_path)


@pytest.mark.parametrize("name", ["index.json", "catalogue.sqlite", "store/edge_config.json"])
def test_an_index_with_a_pipe_for_a_file_is_refused_at_once(name, tmp_path):
    (tmp_path / "a.txt").write_text("The frog eats fish.\n")
    index(tmp_path / "a.txt", tmp_path / "index").close()
    piped(tmp_path / "index" / name)
    with pytest.raises(Damaged, match=f"{name}: not a regular file; restore"):
        index(tmp_path / "a.txt", tmp_path / "index")


@pytest.mark.parametrize("jobs, on", [(0, "local"), (-1, "ray"), (100_000, "local"), (10**30, "ray")])
def test_more_jobs_than_a_machine_can_run_are_refused(jobs, on):
    with pytest.raises(UserError, match=f"--jobs {jobs}: must be 1 to "):
        check_jobs(jobs, on)


@pytest.mark.parametrize("amount", ["tokens=1e300", "tokens=1e16", "seconds=1e10", "flops=1e31", "minutes=1e8"])
def test_a_budget_that_nobody_can_spend_is_refused(amount):
    with pytest.raises(UserError, match=f"--budget {amount}: more than"):
        Budget.parse(amount)


@pytest.mark.parametrize("margin", ["1e300", "1e300%", "nan", "-1", "inf", "1%%"])
def test_a_margin_is_a_sane_number(margin):
    with pytest.raises(UserError, match="--margin "):
        Margin.parse(margin)


def test_a_store_that_would_take_the_process_with_it_is_tried_in_another(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("The frog eats fish.\n")
    index(tmp_path / "a.txt", tmp_path / "index").close()
    crash = "import os, sys; os.abort() if 'index' in sys.argv[-1] else None"
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda words, **how: real([*words[:3], crash, *words[4:]], **how))
    with pytest.raises(Damaged, match="store: damaged, opening it would end the process; restore it"):
        index(tmp_path / "a.txt", tmp_path / "index")
