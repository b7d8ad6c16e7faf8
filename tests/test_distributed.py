"""Many processes: the same global batch gives the same model, whatever the number of processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from support import SMALL, text

from seqloom.runs.folder import RunFolder

STEPS = ["train.steps=12", "train.batch=4", "train.threads=1", "model.dropout=0", "train.optimizer=adamw"]


def torchrun(processes: int, book, out, model: str, *extra: str) -> subprocess.CompletedProcess:
    settings = [word for option in [*SMALL[model], *STEPS, *extra] for word in ("-o", option)]
    fit = ["-m", "seqloom", "fit", "--data", str(book), "--model", model, "--out", str(out), *settings]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *fit] if processes == 1 else [*launch, *fit]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.fixture(scope="module")
def alone(book, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "lstm"
    done = torchrun(1, book, out, "lstm")
    assert done.returncode == 0, done.stderr
    return weights(out)


def weights(out) -> dict[str, torch.Tensor]:
    return load_file(RunFolder(out).model_files() / "model.safetensors")


@pytest.mark.parametrize("extra", [(), ("train.shard=true",)], ids=["DDP", "FSDP2"])
def test_two_processes_agree_with_one(book, alone, tmp_path, extra):
    done = torchrun(2, book, tmp_path / "run", "lstm", *extra)
    assert done.returncode == 0, done.stderr
    together = weights(tmp_path / "run")
    assert alone.keys() == together.keys()
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, atol=2e-5, rtol=1e-4)


def test_two_processes_resume_where_they_were(book, tmp_path):
    extra = ("train.save_every=3", "train.accumulate=2", "model.dropout=0.2")
    whole = torchrun(2, book, tmp_path / "run", "lstm", *extra)
    assert whole.returncode == 0, whole.stderr
    folder, before = RunFolder(tmp_path / "run"), weights(tmp_path / "run")
    (folder.path / "summary.json").unlink()
    shutil.rmtree(folder.checkpoints()[0][1])
    again = torchrun(2, book, tmp_path / "run", "lstm", *extra)
    assert again.returncode == 0, again.stderr
    assert "continuing from step" in again.stderr
    after = weights(tmp_path / "run")
    assert all(torch.equal(before[name], after[name]) for name in before)
