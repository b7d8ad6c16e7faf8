"""Exports: what a target holds is loaded there and equal, anything else is refused in a sentence."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import foreign
import pytest
import torch
from safetensors.torch import load_file
from support import pairs_file, small_fit, text
from toys import language_models, network, tokens

import seqloom
from seqloom import cli
from seqloom.core.errors import RunError, UserError
from seqloom.export import card, hf, onnx_graphs, target
from seqloom.export.onnx_graphs import step_graph
from seqloom.export.onnx_whole import whole_graph
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.weights.files import Folder
from seqloom.weights.layouts import LAYOUTS
from seqloom.weights.layouts.inverse import to_theirs
from seqloom.weights.tensors import Taker, open_tensors

TINY = ["train.steps=3", "tokenizer.kind=bytes", "model.output_bias=false", "model.width=16", "model.heads=2"]
PRESETS = {  # options, and the class of transformers that holds them
    "default": ([], "Qwen3ForCausalLM"),
    "llama": (["model.preset=llama", "model.kv_heads=1", "model.tie=true"], "LlamaForCausalLM"),
    "window": (["model.preset=llama", "model.window=5"], "MistralForCausalLM"),
    "biased": (["model.preset=llama", "model.qkv_bias=true"], "Qwen2ForCausalLM"),
    "default with a window": (["model.window=5", "model.head_size=6"], "Qwen3ForCausalLM"),
    "gpt2": (["model.preset=gpt2"], "GPT2LMHeadModel"),
}
COUNTED = {"ngram", "pretrained"}  # refused, which the command is asked for


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Language models by their options, each trained once."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "book.txt").write_text(text(3000))
    made: dict[tuple[str, ...], Path] = {}

    def get(model: str, *options: str) -> Path:
        key = (model, *options)
        if key not in made:
            made[key] = folder / f"run-{len(made)}"
            small_fit(folder / "book.txt", made[key], model, options)
        return made[key]

    return get


@pytest.mark.parametrize("name", PRESETS)
def test_a_layout_of_transformers_is_loaded_there_and_equal(shelf, tmp_path: Path, name: str) -> None:
    options, wanted = PRESETS[name]
    facts = seqloom.export(shelf("gpt", *TINY, *options), to="hf", out=tmp_path / "out")
    assert facts["class"] == wanted
    assert facts["difference"] <= target.BAR
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [wanted]


@pytest.mark.parametrize("name", foreign.DECODERS)
def test_there_and_back_again_is_the_identity(tmp_path: Path, name: str) -> None:
    """Tensors bit for bit, and a configuration that means the same."""
    kind, options = foreign.DECODERS[name]
    foreign.save(tmp_path, kind, options)
    config = json.loads((tmp_path / "config.json").read_text())
    before = load_file(tmp_path / "model.safetensors")
    layout = LAYOUTS[config["model_type"]]
    section = layout.section(config)
    ours = dict(layout.tensors(section, config, Taker(open_tensors(Folder(tmp_path, "hf:x")), dry=False)))
    after = to_theirs(layout, section, config, ours)
    assert all(torch.equal(before[one], after[one]) for one in before), before.keys() ^ after.keys()
    assert after.keys() == before.keys()


@pytest.mark.parametrize("name", ["gpt2", "llama scaled", "qwen3"])
def test_a_foreign_model_comes_out_as_it_came_in(tmp_path: Path, name: str) -> None:
    kind, options = foreign.DECODERS[name]
    foreign.save(tmp_path / "theirs", kind, options)
    seqloom.export(f"hf:{tmp_path / 'theirs'}", to="hf", out=tmp_path / "out")
    before, after = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "out"))
    assert before.keys() == after.keys() and all(torch.equal(before[one], after[one]) for one in before)
    configs = [json.loads((tmp_path / one / "config.json").read_text()) for one in ("theirs", "out")]
    sections = [LAYOUTS[config["model_type"]].section(config) for config in configs]
    differing = {one for one in sections[0] if sections[0][one] != sections[1][one]}
    assert differing <= {"dropout"}, sections


@pytest.mark.parametrize("name", foreign.ENCODERS)
def test_an_encoder_comes_back_but_for_what_is_folded(tmp_path: Path, name: str) -> None:
    """The embedding of token types is added to positions; positions that padding has are not read."""
    kind, options = foreign.ENCODERS[name]
    foreign.save(tmp_path, kind, options, "Model", pieces=True)
    config = json.loads((tmp_path / "config.json").read_text())
    layout = LAYOUTS[config["model_type"]]
    section = layout.section(config)
    take = Taker(open_tensors(Folder(tmp_path, "hf:x")), dry=False)
    ours = dict(layout.tensors(section, config, take))
    after = to_theirs(layout, section, config, ours)
    again = dict(layout.tensors(section, config, Taker(_Held(after), dry=False)))  # type: ignore[arg-type]
    parts = "embed.parts.weight"
    assert all(torch.equal(ours[one], again[one]) for one in ours if one != parts)
    before = load_file(tmp_path / "model.safetensors")
    prefix = next(
        one
        for one in ("bert.", "roberta.", "distilbert.", "model.")
        if f"{one}embeddings.word_embeddings.weight" in after
    )
    for one, tensor in before.items():
        if "position_embeddings" not in one and "token_type" not in one and "pooler" not in one:
            assert torch.equal(after[prefix + one], tensor), one


class _Held:
    """Tensors in memory."""

    name = "held"

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors, self.shapes = tensors, {one: tuple(t.shape) for one, t in tensors.items()}

    def load(self, name: str) -> torch.Tensor:
        return self.tensors[name]


@pytest.mark.parametrize("name", sorted({*language_models()} - COUNTED))
def test_every_causal_model_has_a_one_step_graph(tmp_path: Path, name: str) -> None:
    config = find_config("models", name)
    options = {"depth": 2 if name == "xlstm" else 1} if "depth" in config.model_fields else {}
    model = network(name, options).float().eval()
    with target.quiet():
        facts = step_graph(model, tokens(3, 20), None, tmp_path)
    assert facts["difference"] <= target.BAR
    inputs = facts["graphs"]["step.onnx"]["inputs"]
    assert all(about["shape"][0] == "batch" for about in inputs.values())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gru", {"bidirectional": True, "depth": 2}),
        ("bert", {"depth": 1}),
        ("mamba2", {"depth": 1}),
        ("gpt", {"depth": 1}),
    ],
    ids=str,
)
def test_a_whole_sequence_of_any_length_with_its_mask(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    task = find_config("tasks", "masked_lm").model_validate({"length": 16}).build(_Words())
    model = find_config("models", name).model_validate({"width": 16, **options}).assemble(task).float().eval()
    mask = torch.ones(3, 12, dtype=torch.bool)
    mask[1, 7:] = False
    with target.quiet():
        facts = whole_graph(model, tokens(3, 12), mask, tmp_path / "model.onnx")
    assert facts["difference"] <= target.BAR


class _Words:
    size, kind, specials, unk, pad = 11, "words", frozenset({0, 1, 2, 3}), 3, 0


@pytest.mark.parametrize(("to", "more"), [("ctranslate2", []), ("gguf", [])], ids=["ctranslate2", "gguf"])
@pytest.mark.parametrize("name", ["default", "gpt2"])
def test_other_programs_hold_the_layouts_too(shelf, tmp_path: Path, name: str, to: str, more: list[str]) -> None:
    facts = seqloom.export(shelf("gpt", *TINY, *PRESETS[name][0]), to=to, out=tmp_path / "out")
    assert facts["difference"] <= target.BAR


def test_eight_bits_are_measured_by_perplexity(shelf, tmp_path: Path) -> None:
    facts = seqloom.export(shelf("gpt", *TINY), to="ctranslate2", out=tmp_path / "out", int8=True)
    found = facts["perplexity"]
    assert found["change"] == pytest.approx(found["export"] / found["run"] - 1)
    assert abs(found["change"]) < 0.5  # 0.1 % on one processor, 8 % with the instructions of an older one
    assert json.loads((tmp_path / "out" / "export.json").read_text())["int8"] is True


REFUSED = {
    ("gru", "hf"): "gru has no layout in transformers",
    ("gru", "ctranslate2"): "gru has no layout in transformers",
    ("gru", "gguf"): "--to onnx holds every architecture",
    ("ngram", "onnx"): "counts or looks up, so there are no weights",
}


@pytest.mark.parametrize(("model", "to"), REFUSED)
def test_what_a_target_cannot_hold_is_refused_with_what_can(shelf, tmp_path: Path, model: str, to: str) -> None:
    with pytest.raises(UserError, match=REFUSED[model, to]) as refused:
        seqloom.export(shelf(model, "train.steps=3", "tokenizer.kind=bytes"), to=to, out=tmp_path / "out")
    assert ";" in str(refused.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "to", "reason"),
    [
        (["model.output_bias=true"], "hf", "the output layer has a bias.*model.output_bias=false"),
        (["model.output_bias=true"], "gguf", "the output layer has a bias.*--to ctranslate2"),
        (["model.positions=sinusoidal"], "hf", "neither GPT-2 .* nor Llama"),
        (["model.window=5"], "ctranslate2", "no more than one window"),
        (["model.window=5"], "gguf", "no attention window"),
        (["model.preset=llama", "model.head_size=6"], "ctranslate2", "heads of another size"),
        (["tokenizer.kind=characters"], "gguf", "a tokenizer of kind characters .*tokenizer.kind=bpe or bytes"),
    ],
)  # fmt: skip
def test_a_layout_that_does_not_fit(shelf, tmp_path: Path, options: list[str], to: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        seqloom.export(shelf("gpt", *TINY, *options), to=to, out=tmp_path / "out")


def test_ctranslate2_has_the_bias_that_transformers_lacks(shelf, tmp_path: Path) -> None:
    facts = seqloom.export(shelf("gpt", *TINY, "model.output_bias=true"), to="ctranslate2", out=tmp_path / "out")
    assert facts["difference"] <= target.BAR


def test_an_export_that_does_not_agree_leaves_nothing(shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = hf.to_theirs

    def spoiled(*arguments: Any) -> Any:
        found = plain(*arguments)
        return {name: t + 0.1 if "down_proj" in name or "norm" in name else t for name, t in found.items()}

    monkeypatch.setattr(hf, "to_theirs", spoiled)
    with pytest.raises(RunError, match=r"does not agree with the run: its logits differ by .*nothing was written"):
        seqloom.export(shelf("gpt", *TINY), to="hf", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_run_that_needs_another_is_merged_first(shelf, tmp_path: Path) -> None:
    base = shelf("gpt", *TINY)
    options = ["lora.rank=2", "train.steps=2", "train.threads=1", "train.batch=4", "task.length=16"]
    fit(
        None, data=str(base.parent / "book.txt"), start=str(base), out=tmp_path / "tuned", overrides=options, quiet=True
    )
    with pytest.raises(UserError, match=r"only adds to the weights of another run.*seqloom merge .* --out PLAIN"):
        seqloom.export(tmp_path / "tuned", to="hf", out=tmp_path / "out")
    seqloom.merge(tmp_path / "tuned", out=tmp_path / "plain")
    assert seqloom.export(tmp_path / "plain", to="hf", out=tmp_path / "out")["difference"] <= target.BAR


def test_the_folder_of_something_else_is_left_alone(shelf, tmp_path: Path) -> None:
    run = shelf("gpt", *TINY)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for out, reason in (
        (tmp_path / "mine", "not empty, and not the folder of an export"),
        (run, "the folder of a run"),
    ):
        with pytest.raises(UserError, match=reason):
            seqloom.export(run, to="hf", out=out)
    out = tmp_path / "out"
    out.mkdir()
    for _ in range(2):  # an empty folder, and an export that is there
        seqloom.export(run, to="hf", out=out)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_names_that_are_no_target(shelf, tmp_path: Path) -> None:
    run = shelf("gpt", *TINY)
    with pytest.raises(UserError, match="unknown target 'onxn'; did you mean 'onnx'"):
        seqloom.export(run, to="onxn", out=tmp_path / "out")
    with pytest.raises(UserError, match="--int8: weights of 8 bits exist for --to ctranslate2 only"):
        seqloom.export(run, to="hf", out=tmp_path / "out", int8=True)


def test_the_command_says_what_differs_and_the_card_names_no_path(
    shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    run, out = shelf("gpt", *TINY), tmp_path / "out"
    for more in ([], ["--json"]):
        monkeypatch.setattr(
            sys, "argv", ["seqloom", "export", str(run), "--to", "ctranslate2", "--out", str(out), *more]
        )
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        assert end.value.code in (None, 0), said.err
        assert "perplexity" in said.out
    page = (out / "README.md").read_text(encoding="utf-8")
    assert page.startswith("---\nlicense: other\n") and str(run.parent) not in page
    for part in ("Perplexity", "hash", "baseline", "protocol", "seed", "versions", "Licence"):
        assert part in page, part
    assert str(tmp_path) not in (out / "export.json").read_text()


def test_paths_in_a_command_lose_their_folders() -> None:
    typed = ["seqloom", "fit", "--data", "/home/me/book.txt", "-o", "data.valid=/x/y.txt", "--from", "hf:/models/a"]
    assert card.command_of(typed) == "seqloom fit --data book.txt -o data.valid=y.txt --from hf:a"


@pytest.mark.parametrize("model", ["gru", "gpt"])
def test_the_code_on_the_card_runs(shelf, tmp_path: Path, model: str, capsys: pytest.CaptureFixture) -> None:
    options = TINY if model == "gpt" else ["train.steps=3", "tokenizer.kind=bytes"]
    seqloom.export(shelf(model, *options), to="onnx", out=tmp_path / "out")
    run_card(tmp_path / "out")
    assert "the cat" in capsys.readouterr().out


def run_card(out: Path) -> None:
    page = (out / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = out.parent / "card.py"
    script.write_text(code.replace("FOLDER", os.fspath(out)))
    runpy.run_path(str(script))


def test_a_translation_has_a_source_and_a_step(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pairs_file(tmp_path / "pairs.tsv")
    options = ["model.width=16", "model.depth=1", "model.heads=2", "tokenizer.kind=words", "train.threads=1"]
    options += ["train.steps=2", "train.batch=8", "task.batch_tokens=0", "task.scored=2", "task.max_new=8"]
    data = str(tmp_path / "pairs.tsv")
    fit(None, task="translation", data=data, model="transformer", out=tmp_path / "run", overrides=options, quiet=True)
    facts = seqloom.export(tmp_path / "run", to="onnx", out=tmp_path / "out")
    assert facts["difference"] <= target.BAR and facts["graphs"].keys() == {"source.onnx", "step.onnx"}
    run_card(tmp_path / "out")
    assert onnx_graphs.START not in {path.name for path in (tmp_path / "out").iterdir()}
    assert capsys.readouterr().out.startswith("(1, 1, ")
