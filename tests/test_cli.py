"""The command line as a person meets it: what it prints, its exit codes, and one clear line for every mistake."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import small_fit, text

import seqloom
from seqloom import cli
from seqloom.cli import _table as cli_print
from seqloom.runs.folder import RunFolder

TINY = ["-o", "model.width=8", "-o", "train.steps=3", "-o", "train.threads=1", "-o", "task.length=8"]


def call(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.fixture(scope="module")
def trained(book, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "trained"
    small_fit(book, out, "gru", ["train.steps=30"])
    return out


def test_help_is_quick_and_loads_no_torch():
    code = "import sys, seqloom.cli as c; sys.argv = ['seqloom', '--help']\ntry: c.main()\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "assert 'torch' not in sys.modules, 'torch'"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in ("fit", "eval", "generate", "list", "doctor"))


def test_without_a_command_help_is_shown_and_the_version_on_request(run):
    code, out, _ = run()
    assert code == 0 and "Usage" in out and "compare" in out
    assert run("--version")[:2] == (0, f"seqloom {seqloom.__version__}\n")


def test_list_alone_tells_what_can_be_listed(run):
    code, out, _ = run("list")
    assert code == 0 and all(what in out for what in ("models", "tasks", "samples", "runs"))


def test_fit_prints_scores_with_their_protocol(run, book, tmp_path):
    code, out, err = run("fit", "--data", str(book), "--model", "lstm", "--out", str(tmp_path / "r"), *TINY)
    assert code == 0
    assert "nats per token" in out and "uniform baseline" in out and "unigram baseline" in out
    assert "parameters" in err


def test_fit_as_json_is_one_object_on_standard_output(run, book, tmp_path):
    words = ["--data", str(book), "--model", "gpt", "--out", str(tmp_path / "r"), "--json", *TINY]
    code, out, _ = run("fit", *words, "-o", "model.heads=2")
    assert code == 0 and json.loads(out)["scores"]["valid"]["tokens"] > 0
    code, out, err = run("fit", *words, "-o", "model.heads=2")
    assert code == 0 and "nothing to do" in err and json.loads(out)["steps"] == 3


def test_eval_scores_another_text(run, trained, book):
    code, out, _ = run("eval", str(trained), "--data", str(book))
    assert code == 0 and "bits per byte" in out
    code, out, _ = run("eval", str(trained), "--data", str(book), "--json")
    assert json.loads(out)["protocol"].startswith("nats per token")


def test_int8_is_scored_beside_float32_and_generates(run, trained, book, tmp_path):
    words = ["--data", str(book), "--model", "gpt", "--out", str(tmp_path / "r"), *TINY, "-o", "model.heads=2"]
    assert run("fit", *words)[0] == 0
    code, out, _ = run("eval", str(tmp_path / "r"), "--data", str(book), "--int8")
    assert code == 0 and "int8 changes the perplexity by" in out and "this model, float32" in out
    code, out, _ = run("eval", str(tmp_path / "r"), "--data", str(book), "--int8", "--json")
    assert json.loads(out)["loss"] == pytest.approx(json.loads(out)["float32"]["loss"], rel=0.02)
    assert run("generate", str(tmp_path / "r"), "--prompt", "the ", "--max-new", "9", "--int8", "--seed", "1")[0] == 0
    assert run("generate", str(trained), "--prompt", "the ", "--max-new", "9", "--int8")[0] == 0  # recurrent


def test_generate_streams_a_text(run, trained):
    code, out, _ = run("generate", str(trained), "--prompt", "the cat", "--max-new", "20", "--seed", "1")
    assert code == 0 and out.startswith("the cat") and len(out) > 20
    again = run("generate", str(trained), "--prompt", "the cat", "--max-new", "20", "--seed", "1")[1]
    assert again == out


@pytest.mark.parametrize(
    "options",
    [["--temperature", "0"], ["--top-k", "3"], ["--top-p", "0.8"], ["--beams", "3"], ["--count", "3"], ["--stop", "a"]],
    ids=lambda o: o[0],
)
def test_generate_understands(run, trained, options):
    code, out, _ = run("generate", str(trained), "--prompt", "the ", "--max-new", "12", "--json", *options)
    texts = json.loads(out)["texts"]
    assert code == 0 and len(texts) == (3 if "--count" in options else 1)
    if "--stop" in options:
        assert "a" not in texts[0]


def test_generate_stops_before_the_stop_text(run, trained):
    _, whole, _ = run("generate", str(trained), "--prompt", "the ", "--max-new", "60", "--seed", "5")
    _, cut, _ = run("generate", str(trained), "--prompt", "the ", "--max-new", "60", "--seed", "5", "--stop", "a")
    assert cut.rstrip("\n") == "the " + whole[4:].split("a")[0]


def test_generate_from_an_empty_prompt(run, trained):
    assert run("generate", str(trained), "--max-new", "5")[0] == 0


def test_list_shows_models_tasks_samples_and_runs(run, trained):
    assert "lstm" in run("list", "models")[1] and "language_model" in run("list", "tasks")[1]
    assert "python-docs" in run("list", "samples")[1]
    assert (
        "model.width" in run("list", "models", "gpt")[1] and "task.length" in run("list", "tasks", "language_model")[1]
    )
    code, out, _ = run("list", "runs", str(trained.parent), "--json")
    assert code == 0 and json.loads(out)[0]["state"] == "finished"


def test_doctor_speaks_of_a_good_and_of_a_bad_file(run, book, tmp_path):
    code, out, _ = run("doctor", "--task", "language_model", "--data", str(book))
    assert code == 0 and "characters" in out
    (tmp_path / "bad.txt").write_bytes(b"fine\nnot \xff fine\n")
    code, out, _ = run("doctor", "--data", str(tmp_path / "bad.txt"), "--json")
    assert code == 2 and any(f["level"] == "error" for f in json.loads(out)["findings"])


def test_doctor_examines_pairs_by_the_columns_given_or_found(run, tmp_path):
    (tmp_path / "a.txt").write_text("Hi.\t嗨。\nRun!\t跑！\n", encoding="utf-8")
    arguments = ["doctor", "--task", "translation", "--data", str(tmp_path / "a.txt")]
    code, out, _ = run(*arguments, "--columns", "source=1,target=2", "--valid", str(tmp_path / "a.txt"), "--json")
    found = " ".join(f["message"] for f in json.loads(out)["findings"])
    assert code == 0 and "2 pairs" in found and "100.0% of the sources" in found
    code, out, _ = run(*arguments)
    assert "columns: source = 1 (no header; the only two texts, in file order), target = 2" in out
    assert code == 2 and "too few pairs (2) for a valid split" in out, "as in fit"


def bad(tmp_path: Path, name: str, content: bytes) -> str:
    (tmp_path / name).write_bytes(content)
    return str(tmp_path / name)


MISTAKES = {
    "a missing file": (lambda d: ["--data", str(d / "nowhere.txt")], r"nowhere.txt: .*"),
    "an empty file": (lambda d: ["--data", bad(d, "e.txt", b"")], r"e.txt: .*empty"),
    "one character": (lambda d: ["--data", bad(d, "one.txt", b"x")], r"one.txt"),
    "one short line": (lambda d: ["--data", bad(d, "line.txt", b"hello")], r""),
    "a binary file": (lambda d: ["--data", bad(d, "b.bin", bytes(range(256)) * 9)], r"b.bin: .*binary"),
    "bad UTF-8": (lambda d: ["--data", bad(d, "u.txt", b"one\ntwo\nthr\xffee\n" * 50)], r"u.txt:3: not UTF-8"),
    "a vocabulary of one": (lambda d: ["--data", bad(d, "a.txt", b"a" * 500)], r"1 distinct token"),
    "Chinese as words": (
        lambda d: [
            "--data",
            bad(d, "z.txt", "深度学习模型可以处理序列数据而不需要空格".encode() * 99),
            "-o",
            "tokenizer.kind=words",
        ],
        r"characters",
    ),
    "a wrong option": (
        lambda d: ["--data", bad(d, "t.txt", b"ab " * 99), "-o", "train.stpes=3"],
        r"did you mean train.steps\?",
    ),
    "a wrong type": (
        lambda d: ["--data", bad(d, "t.txt", b"ab " * 99), "-o", "model.width=wide"],
        r"model.width='wide'",
    ),
    "an override without a value": (lambda d: ["--data", "x", "-o", "steps"], r"section.option=value"),
    "an unknown model": (lambda d: ["--data", "x", "--model", "lsmt"], r"did you mean 'lstm'\?"),
    "an unknown task": (lambda d: ["--data", "x", "--task", "language_mdel"], r"did you mean 'language_model'\?"),
    "an unknown sample": (lambda d: ["--data", "sample:python-doc"], r"did you mean 'python-docs'\?"),
    "no data": (lambda d: [], r"data.train: missing"),
    "a missing recipe": (lambda d: [str(d / "r.toml")], r"r.toml: "),
    "a broken recipe": (lambda d: [bad(d, "r.toml", b"[train\n")], r"not valid TOML"),
    "an unknown flag": (lambda d: ["--dta", "x"], r"[Nn]o such option"),
    "a context too short": (
        lambda d: ["--data", bad(d, "t.txt", b"abc " * 99), "--model", "gpt", "-o", "task.length=4000"],
        r"longer than the model's context",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_line_and_exit_code_2_for(run, tmp_path, mistake):
    words, pattern = MISTAKES[mistake]
    code, _, err = run("fit", *words(tmp_path), "--out", str(tmp_path / "run"), "-o", "train.threads=1")
    last = err.strip().splitlines()
    assert code == 2, err
    assert len([line for line in last if line.startswith("seqloom: ")]) == 1 and "Traceback" not in err
    assert re.search(pattern, last[-1]), last[-1]


def test_a_folder_that_is_not_a_run(run, tmp_path):
    for command in (["eval", str(tmp_path), "--data", "x"], ["generate", str(tmp_path)]):
        code, _, err = run(*command)
        assert code == 2 and "not a run folder" in err


def test_a_run_of_another_task(run, trained, book, tmp_path):
    shutil.copytree(trained, tmp_path / "other")
    other = RunFolder(tmp_path / "other")
    record = other.record()
    record["config"]["task"]["name"] = "translation"
    other.write_record(record)
    code, _, err = run("eval", str(other.path), "--data", str(book))
    assert code == 2 and "translation" in err and "Traceback" not in err


def test_an_unfinished_run_says_so(run, trained, tmp_path):
    folder = RunFolder(tmp_path / "new")
    folder.path.mkdir()
    folder.write_record(RunFolder(trained).record())
    code, _, err = run("generate", str(folder.path))
    assert code == 2 and "no trained model yet" in err


def test_a_damaged_model_is_named(run, book, tmp_path):
    small_fit(book, tmp_path / "r", "gru", ["train.steps=3"])
    weights = tmp_path / "r" / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 8
    weights.write_bytes(data)
    code, _, err = run("generate", str(tmp_path / "r"))
    assert code == 1 and "model.safetensors" in err and "Traceback" not in err


@pytest.mark.parametrize("option", [["--temperature", "-1"], ["--top-p", "0"], ["--top-k", "-2"], ["--count", "0"]])
def test_impossible_choices_are_refused(run, trained, option):
    code, _, err = run("generate", str(trained), *option)
    assert code == 2 and len(err.strip().splitlines()) == 1
    assert option[0] in err or option[0].strip("-").replace("-", "_") in err


def test_a_folder_in_use_names_its_holder_and_does_not_wait_for_it(book, tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.lock():
        done = subprocess.run(
            [sys.executable, "-m", "seqloom", "fit", "--data", str(book), "--out", str(folder.path), *TINY],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 1 and f"process {os.getpid()}" in done.stderr and done.stderr.count("\n") == 1


def test_a_full_disk_is_one_line_and_earlier_checkpoints_stay(run, book, tmp_path, monkeypatch):
    from seqloom.runs import durable

    real, written = os.write, 0

    def full(fd, data):
        nonlocal written
        written += len(data)
        if written > 150_000:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(durable.os, "write", full)
    words = [
        "fit",
        "--data",
        str(book),
        "--out",
        str(tmp_path / "r"),
        *TINY,
        "-o",
        "train.steps=400",
        "-o",
        "train.save_every=2",
    ]
    code, _, err = run(*words)
    monkeypatch.setattr(durable.os, "write", real)
    assert code == 1 and "no space left" in err.lower() and "Traceback" not in err
    folder = RunFolder(tmp_path / "r")
    newest = folder.newest_whole(print)
    assert newest is not None and newest[0] >= 2


def test_running_out_of_memory_is_one_line(run, book, tmp_path, monkeypatch):
    from seqloom.train import loop

    def allocate(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 2000000000 bytes")

    monkeypatch.setattr(loop.Trainer, "update", allocate)
    code, _, err = run("fit", "--data", str(book), "--out", str(tmp_path / "r"), *TINY)
    assert code == 1 and "out of memory; lower model.width" in err


ODD_NAMES = ["with space", "表情🙂", "ﷺ", "e\u0301", "-dash", "new\nline", "x" * 250, "con", "dot.", "..."]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_work_or_are_refused_in_one_line(run, book, tmp_path, name):
    data = tmp_path / f"{name}.txt"
    data.write_text(book.read_text())
    code, out, err = run("fit", "--data", str(data), "--out", str(tmp_path / name), *TINY)
    assert code == 0, err
    assert run("generate", str(tmp_path / name), "--max-new", "3")[0] == 0
    assert run("eval", str(tmp_path / name), "--data", str(data))[0] == 0


def test_a_narrow_screen_shows_fewer_numbers_and_cuts_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    cli_print.print_table([{"who": "seasonal naive baseline", "first": 1.25, "second": 12.5, "third": 3.5}])
    shown = capsys.readouterr().out
    assert "1.2500" in shown and "12.5000" in shown and "third" not in shown and "seasonal" in shown


@pytest.mark.parametrize("width", range(24, 90, 3))
def test_numbers_are_whole_or_left_out_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    cli_print.print_table([{"who": "seasonal naive baseline"} | {f"score{n}": 100 + n / 10 for n in range(8)}])
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split()[1:] == [f"score{n}" for n in range(len(heads.split()) - 1)]
    assert {word for row in rows for word in row.split() if word[0] == "1"} == {
        f"{100 + n / 10:.4f}" for n in range(len(heads.split()) - 1)
    }
