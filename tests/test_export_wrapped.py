"""Models of transformers that were wrapped: they go back into the class that they came from."""

from __future__ import annotations

from pathlib import Path

import foreign
import pytest
import torch
from safetensors.torch import load_file
from support import pairs_file, small_fit, text

import seqloom
from seqloom.core.errors import UserError
from seqloom.export import target
from seqloom.runs.fit import fit

HEADS = {"gpt-neox": "ForCausalLM", "bloom": "ForCausalLM"} | dict.fromkeys(
    ("t5", "t5 gated", "bart", "marian"), "ForConditionalGeneration"
)


@pytest.mark.parametrize("name", HEADS)
def test_a_wrapped_model_comes_out_as_it_came_in(tmp_path: Path, name: str) -> None:
    kind, options = (foreign.WRAPPED | foreign.TWO_SIDED)[name]
    with target.quiet():
        foreign.save(tmp_path / "theirs", kind, options, HEADS[name])
    facts = seqloom.export(f"hf:{tmp_path / 'theirs'}", to="hf", out=tmp_path / "out")
    assert facts["class"].startswith(kind) and facts["difference"] <= target.BAR
    before, after = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "out"))
    assert before.keys() == after.keys() and all(torch.equal(before[one], after[one]) for one in before)


def test_trained_further_it_is_still_of_its_class(tmp_path: Path) -> None:
    with target.quiet():
        foreign.save(tmp_path / "theirs", *foreign.TWO_SIDED["bart"], "ForConditionalGeneration")
    data, options = str(pairs_file(tmp_path / "pairs.tsv")), ["train.steps=3", "train.batch=8", "train.threads=1"]
    options += ["task.batch_tokens=0", "task.scored=2", "task.beams=1", "task.max_new=8"]
    how = {"task": "translation", "start": f"hf:{tmp_path / 'theirs'}", "overrides": options, "quiet": True}
    fit(None, data=data, out=tmp_path / "run", **how)
    facts = seqloom.export(tmp_path / "run", to="hf", out=tmp_path / "out")
    assert facts["difference"] <= target.BAR and facts["greedy"]["equal"] == facts["greedy"]["sources"]
    before, after = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "out"))
    assert any(not torch.equal(before[one], after[one]) for one in before)


def test_trained_from_the_beginning_it_has_a_class_too(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(2000))
    options = ["train.steps=3", "tokenizer.kind=bytes", "model.width=16", "model.output_bias=false"]
    small_fit(tmp_path / "book.txt", tmp_path / "run", "pretrained", options)
    facts = seqloom.export(tmp_path / "run", to="hf", out=tmp_path / "out")
    assert facts["class"] == "GPT2LMHeadModel" and facts["difference"] <= target.BAR


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("hf", "the output layer has a bias, which GPT2LMHeadModel lacks; train with -o model.output_bias=false"),
        ("onnx", "keeps a state of its own; use --to hf"),
        ("ctranslate2", "the layout of a class of transformers; use --to hf"),
    ],
)
def test_what_its_class_does_not_hold_is_refused(tmp_path: Path, to: str, reason: str) -> None:
    (tmp_path / "book.txt").write_text(text(2000))
    run = tmp_path / "run"
    small_fit(tmp_path / "book.txt", run, "pretrained", ["train.steps=3", "tokenizer.kind=bytes", "model.width=16"])
    with pytest.raises(UserError, match=reason):
        seqloom.export(run, to=to, out=tmp_path / "out")


def test_a_task_without_a_class_for_it_is_refused(tmp_path: Path) -> None:
    data, options = str(pairs_file(tmp_path / "pairs.tsv")), ["train.steps=1", "train.threads=1", "model.width=16"]
    options += ["task.scored=2", "task.beams=1", "task.max_new=4", "tokenizer.kind=bytes"]
    how = {"task": "translation", "model": "pretrained", "overrides": options, "quiet": True}
    fit(None, data=data, out=tmp_path / "run", **how)
    with pytest.raises(UserError, match="translation by a wrapped model that is causal"):
        seqloom.export(tmp_path / "run", to="hf", out=tmp_path / "out")
