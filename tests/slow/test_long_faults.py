"""Faults that take minutes or a limited machine: every family killed at random, too little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from support import text
from test_resume import test_killed_at_twenty_random_moments_equals_uninterrupted as killed_at_random
from test_resume import uninterrupted

from seqloom.runs.folder import RunFolder


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.mark.parametrize("model", ["rnn", "gru", "window"])
def test_the_other_families_killed_at_random_moments_too(book, tmp_path, model):
    killed_at_random(book, tmp_path, uninterrupted(book, tmp_path / "whole", model))


def limited(gigabytes: float, book: Path, out: Path, *options: str) -> subprocess.CompletedProcess:
    settings = [word for option in ("train.threads=1", "train.steps=3", *options) for word in ("-o", option)]
    fit = [sys.executable, "-m", "seqloom", "fit", "--data", str(book), "--out", str(out), *settings]
    shell = f'ulimit -v {int(gigabytes * 1e6)}; exec "$@"'
    return subprocess.run(["bash", "-c", shell, "bash", *fit], capture_output=True, text=True)


def test_what_cannot_fit_is_refused_before_it_is_allocated(book, tmp_path):
    done = limited(1.5, book, tmp_path / "run", "model.width=30000")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "training needs about" in done.stderr and "available" in done.stderr


def test_running_out_on_the_way_is_one_line_and_leaves_checkpoints_whole(book, tmp_path):
    first = limited(6, book, tmp_path / "run", "model.width=16", "task.length=8")
    assert first.returncode == 0, first.stderr
    done = limited(
        1.5, book, tmp_path / "other", "model.width=64", "task.truncation=full", "task.stretch=0", "train.batch=1"
    )
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), done.stderr
    folder = RunFolder(tmp_path / "run")
    assert folder.newest_whole(print) is not None


def test_a_training_step_compiles(book, tmp_path):
    done = limited(64, book, tmp_path / "run", "model.name=window", "model.width=16", "train.compile=true")
    assert done.returncode == 0, done.stderr
    assert "compiling the training step" in done.stderr
