"""Seconds of training: by which clock they are counted, and what a comparison says of a busy machine."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from compare_example import example
from support import small_fit, text

from seqloom.compare.busy import slowdown
from seqloom.compare.report import report_files
from seqloom.compare.report.table import notes
from seqloom.lab import worker
from seqloom.runs.folder import RunFolder
from seqloom.train import clock as clocks
from seqloom.train import loop
from seqloom.train.clock import Clock


class Time:
    """Two clocks that tests move: `elapsed` for all, `worked` while this process runs."""

    elapsed, worked = 100.0, 7.0

    def perf_counter(self) -> float:
        return self.elapsed

    def thread_time(self) -> float:
        return self.worked

    def run(self, seconds: float, busy: float = 1.0) -> None:
        self.worked, self.elapsed = self.worked + seconds, self.elapsed + busy * seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(clocks, "time", found)
    return found


def test_cpu_time_is_not_lengthened_by_other_programs_and_elapsed_time_is(time: Time) -> None:
    cpu, wall = Clock("cpu"), Clock("wall")
    time.run(2.0, busy=3.0)
    assert cpu.lap() == (2.0, 6.0)
    assert wall.lap() == (6.0, 6.0)


def test_on_a_gpu_cpu_means_elapsed_time(time: Time) -> None:
    clock = Clock("cpu", "cuda")
    time.run(1.0, busy=4.0)
    assert clock.lap() == (4.0, 4.0)


def test_a_lap_begins_where_the_last_one_ended_and_a_restart_leaves_time_out(time: Time) -> None:
    clock = Clock("cpu")
    time.run(1.0)
    clock.lap()
    time.run(2.0)
    clock.restart()
    time.run(3.0, busy=2.0)
    assert clock.lap() == (3.0, 6.0)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(text(3000))
    return path


def test_a_run_records_both_times(book: Path, tmp_path: Path) -> None:
    run = small_fit(book, tmp_path / "run", "rnn", ["train.steps=3", "train.clock=cpu", "train.log_every=1"])
    assert 0 < run.summary["seconds"] <= run.summary["wall_seconds"] + 0.1
    assert all(line["seconds"] <= line["wall_seconds"] + 0.1 for line in RunFolder(tmp_path / "run").metrics())


def test_a_budget_in_seconds_ends_by_the_clock_that_was_chosen(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {}
    for kind in ("cpu", "wall"):
        ticking = Ticking()
        monkeypatch.setattr(clocks, "time", ticking)
        run = small_fit(book, tmp_path / kind, "rnn", ["train.seconds=8", f"train.clock={kind}"])
        steps[kind] = run.summary["steps"]
    assert steps["cpu"] == pytest.approx(4 * steps["wall"], abs=3)


class Ticking:
    """Every reading is one second of work, on a machine where that takes four."""

    def __init__(self) -> None:
        self.readings = 0

    def thread_time(self) -> float:
        self.readings += 1
        return float(self.readings)

    def perf_counter(self) -> float:
        self.readings += 1
        return 4.0 * self.readings


def test_a_checkpoint_of_a_version_with_one_clock_goes_on(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(loop, "asdict", lambda progress: {"step": progress.step, "tokens": 9, "seconds": 50.0})
        small_fit(book, tmp_path / "run", "rnn", ["train.steps=3"])
    run = small_fit(book, tmp_path / "run", "rnn", ["train.steps=4"])
    assert run.summary["steps"] == 4
    assert run.summary["seconds"] > 50 and run.summary["wall_seconds"] > 50


def entry(*times: tuple[float, float | None]) -> dict[str, Any]:
    return {"runs": [{"state": "done", "seconds": cpu, "wall_seconds": wall} for cpu, wall in times]}


def test_the_machine_was_busy_when_a_final_run_took_longer_than_its_cpu_time() -> None:
    assert slowdown([entry((10.0, 11.0), (10.0, 11.4))]) is None
    assert slowdown([entry((10.0, 10.1)), entry((10.0, 18.0), (10.0, 12.0))]) == pytest.approx(1.8)
    assert slowdown([entry((10.0, None))]) is None, "an older run knows only one time"
    assert slowdown([{"runs": [{"state": "failed"}]}]) is None


@pytest.mark.parametrize(("kind", "english", "chinese"), [
    ("seconds", "less affected, because seconds of the budget are counted as CPU time", "分数受影响较小"),
    ("tokens", "not affected, because the budget is not a time", "分数不受影响"),
])  # fmt: skip
def test_a_report_says_that_the_machine_was_busy_and_what_suffers(kind: str, english: str, chinese: str) -> None:
    result = copy.deepcopy(example())
    assert not notes(result)
    result["timing"]["busy"] = 1.83
    result["protocol"] |= {"clock": "cpu", "budget": {"kind": kind, "amount": 60}}
    files = {name: content.decode() for name, content in report_files(result).items()}
    assert "busy with other work: a final run took up to 1.8 times its CPU time" in files["report.md"]
    assert english in files["report.md"] and "Elapsed times and latencies" in files["report.md"]
    assert "1.8 倍" in files["report.zh-CN.md"] and chinese in files["report.zh-CN.md"]
    assert english in " ".join(notes(result, 1000))
    assert ("60 seconds of CPU time" in files["report.md"]) == (kind == "seconds")


def test_with_several_threads_their_waiting_for_each_other_is_a_possible_cause() -> None:
    result = copy.deepcopy(example())
    result["timing"]["busy"] = 1.2
    result["protocol"]["threads"] = 2
    assert "or the threads of a run waited for each other" in " ".join(notes(result, 1000))


def test_threads_of_a_worker_sleep_while_they_wait_unless_the_user_wants_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    worker.sleep_while_waiting()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    worker.sleep_while_waiting()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
