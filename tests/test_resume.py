"""An interrupted run, issued again, ends as the uninterrupted one does: bit for bit."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from support import digest, small_fit, text

from seqloom.runs.folder import RunFolder

pytestmark = pytest.mark.long


class Whole(NamedTuple):
    model: str
    digest: str
    seconds: float


FAMILIES = ["lstm", "gpt"]
BUSY = ["train.steps=60", "train.accumulate=2", "train.evaluate_every=8", "train.save_every=5", "train.log_every=1"]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    path = folder / "book.txt"
    path.write_text(text(3000))
    for model in FAMILIES:  # what training loads when it begins is loaded here, and not by every child again
        small_fit(path, folder / model, model, [*BUSY, "train.steps=6"])
    return path


@pytest.fixture(scope="module", params=FAMILIES)
def whole(book: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Whole:
    """A run that nothing interrupts."""
    return uninterrupted(book, tmp_path_factory.mktemp("whole") / "run", request.param)


def start(book: Path, out: Path, model: str) -> int:
    """Train in a child process (a fork: torch is loaded already); its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            small_fit(book, out, model, BUSY)
            code = 0
        except BaseException as error:
            code = getattr(error, "exit_code", 1)
        finally:
            os._exit(code)
    return child


def uninterrupted(book: Path, out: Path, model: str) -> Whole:
    started = time.monotonic()
    assert wait(start(book, out, model)) == 0
    return Whole(model, digest(out), time.monotonic() - started)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_killed_at_twenty_random_moments_equals_uninterrupted(book, tmp_path, whole):
    rng, killed = random.Random(whole.model), 0
    broken = tmp_path / "broken"
    while killed < 20:
        child = start(book, broken, whole.model)
        time.sleep(rng.uniform(0, 0.5 * whole.seconds))
        os.kill(child, signal.SIGKILL)
        if wait(child) == 0:  # it was quicker: begin another, so that all twenty kills hit something
            assert digest(broken) == whole.digest
            broken = tmp_path / f"broken-{killed}"
        killed += 1
    while wait(start(book, broken, whole.model)) != 0:
        pass
    assert digest(broken) == whole.digest


@pytest.mark.parametrize("times", [1, 2, 5])
def test_stopped_politely_several_times_equals_uninterrupted(book, tmp_path, whole, times):
    rng = random.Random(times)
    for n in range(times):
        child = start(book, tmp_path / "broken", whole.model)
        time.sleep(rng.uniform(0.2, 0.9) * whole.seconds / times)
        os.kill(child, signal.SIGTERM if n % 2 else signal.SIGINT)
        assert wait(child) in (0, 130, 143, -signal.SIGTERM, 1)
    assert wait(start(book, tmp_path / "broken", whole.model)) == 0
    assert digest(tmp_path / "broken") == whole.digest


def test_a_signal_saves_a_checkpoint_at_that_step_and_tells_the_exit_code(book, tmp_path):
    child = start(book, tmp_path / "run", "lstm")
    metrics = tmp_path / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") > 3):
        time.sleep(0.005)
    os.kill(child, signal.SIGTERM)
    assert wait(child) == 143
    folder = RunFolder(tmp_path / "run")
    assert folder.checkpoints()[0][0] == folder.metrics()[-1]["step"]


def test_a_finished_run_is_left_alone(book, tmp_path):
    small_fit(book, tmp_path / "run", extra=["train.steps=10"])
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in (tmp_path / "run").rglob("*")}
    for _ in range(3):
        small_fit(book, tmp_path / "run", extra=["train.steps=10"])
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in (tmp_path / "run").rglob("*")} == before


def test_checkpoints_that_a_killed_process_had_no_time_to_remove_go_on_resume(book, tmp_path):
    many = ["train.steps=10", "train.save_every=2", "train.evaluate_every=10"]
    small_fit(book, tmp_path / "run", extra=[*many, "train.keep=9"])
    (tmp_path / "run" / "summary.json").unlink()
    small_fit(book, tmp_path / "run", extra=[*many, "train.keep=2"])
    assert [step for step, _ in RunFolder(tmp_path / "run").checkpoints()] == [10, 8]


@pytest.mark.parametrize("whole", ["lstm"], indirect=True)
def test_a_damaged_checkpoint_is_passed_over(book, tmp_path, whole):
    child = start(book, tmp_path / "run", "lstm")
    folder = RunFolder(tmp_path / "run")
    while len(folder.checkpoints()) < 2:
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    wait(child)
    newest = folder.checkpoints()[0][1] / "model.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    assert wait(start(book, tmp_path / "run", "lstm")) == 0
    assert digest(tmp_path / "run") == whole.digest
