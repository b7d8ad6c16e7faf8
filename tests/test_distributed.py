"""Many processes: the same global batch gives the same model, whatever the number of processes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support import SMALL, text

from seqloom import cli
from seqloom.runs.folder import RunFolder

pytestmark = pytest.mark.long

STEPS = ["train.steps=12", "train.batch=4", "train.threads=1", "model.dropout=0", "train.optimizer=adamw"]


def fit_words(book: Path, out: Path, *extra: str) -> list[str]:
    settings = [word for option in [*SMALL["lstm"], *STEPS, *extra] for word in ("-o", option)]
    return ["fit", "--data", str(book), "--model", "lstm", "--out", str(out), *settings]


def torchrun(processes: int, *words: str) -> subprocess.CompletedProcess:
    """As a user starts it."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "seqloom"]
    return subprocess.run([sys.executable, *launch, *words], capture_output=True, text=True)


def forked(processes: int, said: Path, *words: str) -> list[int]:
    """The same in children of this process, which has torch loaded already: their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    children = []
    for rank in range(processes):
        children.append(os.fork())
        if children[-1] == 0:
            place = {"WORLD_SIZE": processes, "RANK": rank, "LOCAL_RANK": rank}
            os.environ |= address | {name: str(value) for name, value in place.items()}
            _be(["seqloom", *words], said.with_name(f"{said.name}-{rank}"))
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _be(words: list[str], said: Path) -> None:
    code: int | str | None = 1
    try:
        sys.argv, sys.stderr = words, said.open("w")
        cli.main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.fixture(scope="module")
def alone(book, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "lstm"
    assert forked(1, out.with_name("said"), *fit_words(book, out)) == [0]
    return weights(out)


def weights(out) -> dict[str, torch.Tensor]:
    return load_file(RunFolder(out).model_files() / "model.safetensors")


@pytest.mark.parametrize("extra", [(), ("train.shard=true",)], ids=["DDP", "FSDP2"])
def test_two_processes_agree_with_one(book, alone, tmp_path, extra):
    done = torchrun(2, *fit_words(book, tmp_path / "run", *extra))
    assert done.returncode == 0, done.stderr
    together = weights(tmp_path / "run")
    assert alone.keys() == together.keys()
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, atol=2e-5, rtol=1e-4)


def test_two_processes_resume_where_they_were(book, tmp_path):
    words = fit_words(book, tmp_path / "run", "train.save_every=3", "train.accumulate=2", "model.dropout=0.2")
    assert forked(2, tmp_path / "first", *words) == [0, 0], (tmp_path / "first-0").read_text()
    folder, before = RunFolder(tmp_path / "run"), weights(tmp_path / "run")
    (folder.path / "summary.json").unlink()
    shutil.rmtree(folder.checkpoints()[0][1])
    assert forked(2, tmp_path / "again", *words) == [0, 0], (tmp_path / "again-0").read_text()
    assert "continuing from step" in (tmp_path / "again-0").read_text()
    after = weights(tmp_path / "run")
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("extra", [(), ("train.shard=true",)], ids=["DDP", "FSDP2"])
def test_adapters_of_two_processes_agree_with_those_of_one(book, tmp_path, extra):
    import peft  # noqa: F401, loaded here, and not by every child again

    assert forked(1, tmp_path / "base-said", *fit_words(book, tmp_path / "base")) == [0]
    found = []
    for processes, more in ((1, ()), (2, extra)):
        out, said = tmp_path / f"run-{processes}", tmp_path / f"said-{processes}"
        words = [*fit_words(book, out, "lora.rank=2", *more), "--from", str(tmp_path / "base")]
        assert forked(processes, said, *words) == [0] * processes, (tmp_path / f"said-{processes}-0").read_text()
        found.append(load_file(RunFolder(out).model_files() / "adapter_model.safetensors"))
    alone, together = found
    assert alone.keys() == together.keys()
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, atol=2e-5, rtol=1e-4)
