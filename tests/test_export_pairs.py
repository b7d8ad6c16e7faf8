"""Exports of encoder-decoders: every layout, with one vocabulary and with two, loaded there and equal."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from support import pairs_file

import seqloom
from seqloom.core.errors import RunError, UserError
from seqloom.decode.decoding import Decoding
from seqloom.export import pairs_check, pairs_hf, target
from seqloom.runs.fit import fit
from seqloom.runs.run import Run, load

TINY = ["model.width=16", "model.depth=1", "model.heads=2", "train.threads=1", "train.steps=60", "train.batch=8"]
TINY += [
    "train.rate=0.02",
    "model.dropout=0",
    "task.batch_tokens=0",
    "task.scored=2",
    "task.max_new=20",
    "task.beams=1",
]
TWO = ["tokenizer.joint=false", "tokenizer.kind=words", "tokenizer.target_kind=bytes"]
ONE = ["tokenizer.joint=true", "tokenizer.kind=words", "tokenizer.split=space"]
LEARNED = ["model.positions=learned", "model.context=40"]
RUNS = {  # options, and the class of transformers that holds them
    "pre-norm, two": ([*TWO, "model.tie=false"], "PegasusForConditionalGeneration"),
    "pre-norm, one, tied": ([*ONE, "model.tie=true"], "PegasusForConditionalGeneration"),
    "post-norm, two, tied": ([*TWO, "model.preset=published", "model.tie=true"], "MarianMTModel"),
    "post-norm, one": (
        [*ONE, "model.preset=published", "model.tie=false", "model.decoder_depth=2"],
        "MarianMTModel",
    ),
    "learned, two, tied": (
        [*TWO, *LEARNED, "model.bias=false", "model.tie=true"],
        "BlenderbotForConditionalGeneration",
    ),
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs by their options, each trained once."""
    folder = tmp_path_factory.mktemp("runs")
    data = str(pairs_file(folder / "pairs.tsv"))
    made: dict[tuple[str, ...], Path] = {}

    def get(*options: str, model: str = "transformer") -> Path:
        key = (model, *options)
        if key not in made:
            made[key] = folder / f"run-{len(made)}"
            settings = [*TINY, *options]
            fit(None, task="translation", data=data, model=model, out=made[key], overrides=settings, quiet=True)
        return made[key]

    return get


@pytest.mark.parametrize("name", RUNS)
def test_a_class_of_transformers_holds_it(shelf, tmp_path: Path, name: str, capsys: pytest.CaptureFixture) -> None:
    options, wanted = RUNS[name]
    run, out = shelf(*options), tmp_path / "out"
    facts = seqloom.export(run, to="hf", out=out)
    assert facts["class"] == wanted and facts["difference"] <= target.BAR
    assert facts["greedy"]["equal"] == facts["greedy"]["sources"] > 0
    source = a_source(load(run))
    assert run_card(out, source, capsys) == ours(load(run), source) != ""


@pytest.mark.parametrize("name", ["pre-norm, two", "post-norm, one"])
def test_saved_again_by_transformers_it_is_the_same(shelf, tmp_path: Path, name: str) -> None:
    """Marian leaves its table of positions out, and makes it anew: all sines first."""
    from transformers import AutoModelForSeq2SeqLM

    with target.quiet():
        seqloom.export(shelf(*RUNS[name][0]), to="hf", out=tmp_path / "out")
        first: Any = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
        first.save_pretrained(tmp_path / "again")
        again: Any = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again")
    ids = torch.tensor([[4, 5, 6, 2]])
    one, other = (model.eval()(input_ids=ids, decoder_input_ids=ids).logits for model in (first, again))
    assert (one - other).abs().max() <= target.BAR


@pytest.mark.parametrize(
    ("options", "int8"),
    [
        (RUNS["pre-norm, two"][0], False),
        (RUNS["post-norm, one"][0], False),
        ([*TWO, *LEARNED, "model.preset=published", "model.tie=true"], False),
        (RUNS["pre-norm, one, tied"][0], True),
    ],
    ids=["pre-norm", "post-norm", "post-norm, learned", "int8"],
)
def test_ctranslate2_holds_every_layout(
    shelf, tmp_path: Path, options: list[str], int8: bool, capsys: pytest.CaptureFixture
) -> None:
    run, out = shelf(*options), tmp_path / "out"
    facts = seqloom.export(run, to="ctranslate2", out=out, int8=int8)
    assert abs(facts["perplexity"]["change"]) < (0.05 if int8 else target.PERPLEXITY_BAR)
    assert json.loads((out / "export.json").read_text())["int8"] is int8
    source = a_source(load(run))
    written = run_card(out, source, capsys)
    if not int8:
        assert facts["difference"] <= target.BAR and facts["greedy"]["equal"] == facts["greedy"]["sources"] > 0
        assert written == ours(load(run), source) != ""


@pytest.mark.parametrize(
    ("options", "to", "reason"),
    [
        ([*TWO, *LEARNED, "model.preset=published", "model.tie=true"], "hf", "post-norm with learned .*--to ctr"),
        ([*ONE, "task.reverse=true", "train.steps=1"], "ctranslate2", "read backwards .task.reverse.*--to onnx"),
        (RUNS["pre-norm, one, tied"][0], "gguf", "no encoder with a decoder; --to onnx"),
    ],
    ids=["no class", "backwards", "gguf"],
)  # fmt: skip
def test_what_no_layout_holds_is_refused(shelf, tmp_path: Path, options: list[str], to: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        seqloom.export(shelf(*options), to=to, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_encoder_decoder_is_refused(shelf, tmp_path: Path) -> None:
    run = shelf("tokenizer.kind=words", "train.steps=1", model="seq2seq")
    with pytest.raises(UserError, match=r"seq2seq has no layout in transformers .*--to onnx"):
        seqloom.export(run, to="hf", out=tmp_path / "out")


def test_other_outputs_are_noticed(shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shelf(*RUNS["pre-norm, one, tied"][0])
    monkeypatch.setattr(pairs_hf, "_outputs", lambda theirs, given, places: [[4] * 30 for _ in given.sources])
    with pytest.raises(RunError, match=r"greedy search writes .*; nothing was written"):
        seqloom.export(run, to="hf", out=tmp_path / "out")


def test_two_tokens_as_likely_as_each_other_may_change_places(shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    given = pairs_check.Examples([[4, 2]], [[]], 1, 2, 0)
    logits = torch.zeros(1, 2, 9)
    monkeypatch.setattr(pairs_check, "our_logits", lambda source, row: logits)
    found: Any = (None, given, [[4, 5]], [[4, 6]], True)
    assert pairs_check.compare_outputs(*found) == {"equal": 0, "sources": 1}
    logits[0, 1, 6] = -1.0
    with pytest.raises(RunError, match="instead of"):
        pairs_check.compare_outputs(*found)


def a_source(run: Run) -> str:
    return next(iter(run.material.rows(run.tokenizer)["valid"].texts()))[0]


def ours(run: Run, source: str) -> str:
    task: Any = run.task
    ((best, *_),) = task.translate(run.model, [source], Decoding())
    found: str = task.text(best)
    return found


def run_card(out: Path, source: str, capsys: pytest.CaptureFixture) -> str:
    """What the code on the card prints for this source."""
    page = (out / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = code.replace("beam_size=1", "beam_size=1, max_decoding_length=20").replace("the cat", source)
    script = out.parent / "card.py"
    script.write_text(code.replace("FOLDER", str(out)))
    capsys.readouterr()
    with target.quiet():
        runpy.run_path(str(script))
    return capsys.readouterr().out.removesuffix("\n")
