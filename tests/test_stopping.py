"""How commands end: every documented exit code, in one line, and nothing left running."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import SMALL, text

from seqloom import cli
from seqloom.cli import _main
from seqloom.runs.folder import RunFolder

pytestmark = pytest.mark.long

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
ENDLESS = ["train.steps=1000000", "train.log_every=1", "train.evaluate_every=1000000", "train.warmup=5"]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


def fitting(book: Path, out: Path, *options: str) -> list[str]:
    settings = [*SMALL["gru"], "train.batch=4", "train.threads=1", *options]
    words = ["fit", "--task", "language_model", "--data", str(book), "--model", "gru", "--out", str(out)]
    return words + [word for setting in settings for word in ("-o", setting)]


def started(words: list[str], errors: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
    """In a session of its own, whose processes can be counted."""
    command = [sys.executable, "-m", "seqloom", *words]
    with errors.open("wb") as file:
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True, preexec_fn=before
        )


def wait_for(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    while not condition():
        assert process.poll() is None
        time.sleep(0.05)


def session(leader: int) -> list[int]:
    """The processes of its session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if os.getsid(int(entry.name)) == leader and "Z" not in (entry / "stat").read_text().split()[2]:
                    found.append(int(entry.name))
            except OSError:  # it has just ended
                continue
    return found


def check_end(process: subprocess.Popen[bytes], errors: Path, number: int) -> None:
    assert process.wait() == 128 + number
    said = errors.read_text()
    assert "Traceback" not in said and "leaked" not in said and "ignored in" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("seqloom: ")]
    assert line == f"seqloom: stopped by {signal.Signals(number).name}; run the same command again to continue"
    while session(process.pid):
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_training_that_is_stopped_writes_its_checkpoint_and_says_so(book, tmp_path, number):
    run, errors = tmp_path / "run", tmp_path / "errors"
    process = started(fitting(book, run, *ENDLESS), errors)
    wait_for(lambda: (run / "metrics.jsonl").exists(), process)
    process.send_signal(number)
    check_end(process, errors, number)
    step, _ = RunFolder(run).newest_whole(pytest.fail) or (0, None)
    assert step >= 1 and step == RunFolder(run).metrics()[-1]["step"]


def test_a_training_under_nohup_outlives_its_terminal(book, tmp_path):
    run, errors = tmp_path / "run", tmp_path / "errors"
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None  # noqa: E731
    process = started(fitting(book, run, *ENDLESS), errors, ignore)
    wait_for(lambda: (run / "metrics.jsonl").exists(), process)
    process.send_signal(signal.SIGHUP)
    steps = len(RunFolder(run).metrics())
    wait_for(lambda: len(RunFolder(run).metrics()) > steps + 5, process)
    process.send_signal(signal.SIGTERM)
    check_end(process, errors, signal.SIGTERM)


def test_a_comparison_that_is_stopped_leaves_no_process_behind(book, tmp_path):
    out, errors = tmp_path / "out", tmp_path / "errors"
    words = ["compare", "--task", "language_model", "--data", str(book), "--models", "gru,rnn", "--out", str(out)]
    words += ["--budget", "tokens=100M", "--jobs", "2", "--trials", "0", "--seeds", "1", "--params", "5k"]
    process = started([*words, "-o", "task.length=16", "-o", "train.log_every=1"], errors)
    wait_for(lambda: list(out.glob("runs/*/*/metrics.jsonl")), process)
    process.send_signal(signal.SIGHUP)
    check_end(process, errors, signal.SIGHUP)


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["seqloom", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), capsys.readouterr().err

    return run


@pytest.mark.parametrize("number", STOPS)
def test_every_command_ends_on_a_signal_with_one_line(call, monkeypatch, number):
    before = [signal.getsignal(each) for each in STOPS]
    monkeypatch.setattr("seqloom.cli.list.command", lambda: os.kill(os.getpid(), number) or time.sleep(10))
    code, said = call("list")
    name = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    assert (code, said) == (128 + number, f"seqloom: {name}\n")
    assert [signal.getsignal(each) for each in STOPS] == before


def test_an_interrupt_without_a_signal_is_not_taken_for_the_signal_of_an_earlier_command(call, monkeypatch):
    monkeypatch.setattr("seqloom.cli.list.command", lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(10))
    assert call("list")[0] == 128 + signal.SIGTERM

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seqloom.cli.list.command", interrupted)
    assert call("list") == (130, "seqloom: interrupted\n")


def test_a_full_disk_is_exit_code_1_and_what_was_there_stays(book, tmp_path):
    run, errors = tmp_path / "run", tmp_path / "errors"
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))  # noqa: E731
    process = started(fitting(book, run, "train.steps=2"), errors, small)
    assert process.wait() == 1
    line = errors.read_text().splitlines()[-1]
    assert line.startswith("seqloom: cannot write") and "free some space and run the same command again" in line
    assert not list(run.rglob(".seqloom-tmp*")) and not (run / "summary.json").exists()


def test_a_folder_in_use_is_exit_code_1(call, book, tmp_path):
    with RunFolder(tmp_path / "run").lock():
        code, said = call(*fitting(book, tmp_path / "run", "train.steps=2"))
    assert code == 1 and f"in use by process {os.getpid()}" in said and "Traceback" not in said


def test_a_loss_that_is_not_finite_is_exit_code_1(call, book, tmp_path, monkeypatch):
    import torch

    from seqloom.train.loop import Trainer

    monkeypatch.setattr(Trainer, "_settle_gradients", lambda trainer, count: float(torch.nan))
    code, said = call(*fitting(book, tmp_path / "run", "train.steps=2"))
    assert code == 1 and "is not finite" in said.splitlines()[-1]


def test_too_little_memory_is_exit_code_1(call, book, tmp_path, monkeypatch):
    from seqloom.train.loop import Trainer

    def fail(*_: object) -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(Trainer, "update", fail)
    code, said = call(*fitting(book, tmp_path / "run", "train.steps=2"))
    assert code == 1 and said.splitlines()[-1].startswith("seqloom: out of memory; lower")


def test_a_fault_that_the_doctor_finds_is_exit_code_2(call, tmp_path):
    (tmp_path / "rows.csv").write_text("text,label\none,a\n")
    code, said = call("doctor", "--task", "classification", str(tmp_path / "rows.csv"))
    assert code == 2 and "Traceback" not in said


@pytest.mark.parametrize("words", [["fit", "--data", "nowhere.txt"], ["list", "nothing"], ["eval"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_2(call, words):
    code, said = call(*words)
    assert code == 2 and said.count("\nseqloom: ") + said.startswith("seqloom: ") == 1


def test_a_finished_run_where_nothing_can_be_written_is_shown_with_exit_code_0(call, book, tmp_path, monkeypatch):
    words = fitting(book, tmp_path / "run", "train.steps=2")
    assert call(*words)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    opened = os.open

    def read_only(path: object, flags: int, *more: int, **options: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(path).startswith(str(tmp_path)):
            raise OSError(30, "Read-only file system", str(path))
        return opened(path, flags, *more, **options)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(os, "open", read_only)
    code, said = call(*words)
    assert code == 0 and "already finished, nothing to do" in said
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    shutil.rmtree(tmp_path / "run" / "model")
    code, said = call(*words)
    assert code == 1 and "read-only file system; choose a folder that can be written to" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_when_a_command_has_just_ended_is_one_line_too(number, monkeypatch, capsys):
    monkeypatch.setattr(_main, "main", lambda: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 128 + number and said.startswith("seqloom: ") and said.count("\n") == 1
