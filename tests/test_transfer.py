"""fit --from: the encoder and tokenizer of another run, whatever it was taught, and a head of its own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support import pairs_file
from toys import alive, every_case, language_model, title

from seqloom.core.errors import UserError
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config
from seqloom.runs.run import Run, load
from seqloom.tokenizers import Tokenizer
from seqloom.train.optimizers import Optimizers
from seqloom.train.settings import TrainConfig
from seqloom.train.transfer import freeze, transfer

pytestmark = pytest.mark.long

SMALL = ["train.steps=2", "train.threads=1", "train.batch=4", "tokenizer.kind=characters"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = random.Random(0)
    words = [chance.choices(["the", "cat", "sat", "on", "a", "mat"], k=6) for _ in range(80)]
    (tmp_path / "book.txt").write_text("\n".join(map(" ".join, words)))
    rows = "".join(f"{' '.join(line)},{'cat' if 'cat' in line else 'none'}\n" for line in words)
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    return tmp_path


def first_run(folder: Path, task: str, model: str, *options: str) -> Path:
    data = pairs_file(folder / "pairs.tsv") if task == "translation" else folder / "book.txt"
    out = folder / f"{task}-{model}"
    fit(
        None,
        task=task,
        data=str(data),
        model=model,
        out=out,
        overrides=[*SMALL, "model.width=16", *options],
        quiet=True,
    )
    return out


def second_run(folder: Path, start: Path | str, *options: str, **flags: Any) -> Run:
    settings = ["train.steps=2", "train.threads=1", "task.longest=16", *options]
    return fit(None, task="classification", data=str(folder / "rows.csv"), start=str(start), out=folder / "second",
               overrides=settings, quiet=True, **flags)  # fmt: skip


@pytest.mark.parametrize(
    ("task", "model", "options"),
    [
        ("masked_lm", "bert", ["task.length=16"]),
        ("masked_lm", "lstm", ["task.length=16", "model.bidirectional=true"]),
        ("language_model", "gpt", ["task.length=16", "model.context=16"]),
        ("language_model", "lstm", ["model.tie=true", "model.inputs=0"]),
        ("language_model", "mingru", []),
        ("translation", "transformer", ["tokenizer.joint=true", "task.scored=2"]),
        ("translation", "seq2seq", ["tokenizer.joint=true", "task.scored=2"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_table_backbone_and_tokenizer_are_those_of_the_first_run(
    folder: Path, task: str, model: str, options: list[str]
) -> None:
    start = first_run(folder, task, model, *options)
    still = ["train.rate=1e-30", "train.matrix_rate=1e-30"]  # what was taken is seen as it was
    run = second_run(folder, start, *still)
    before = load_file(RunFolder(start).model_files() / "model.safetensors")
    after = dict(run.model.named_parameters())
    taken = [name for name in after if name.startswith("backbone.")]
    # a value of exactly zero is moved by the tiny rate
    assert taken and all(torch.allclose(after[name], before[name], rtol=0, atol=1e-25) for name in taken)
    rows = min(len(before["embed.weight"]), len(after["embed.weight"]))
    assert torch.equal(after["embed.weight"][:rows], before["embed.weight"][:rows])
    assert run.tokenizer.tokenizer.vocabulary == Tokenizer.load(RunFolder(start).model_files()).vocabulary
    assert run.config.model["name"] == model and run.config.train.start == str(start)
    (answer,) = load(folder / "second").predict(texts=["the cat"])
    assert answer["label"] in ("cat", "none")


def test_another_model_another_size_and_a_run_without_an_encoder_are_refused(folder: Path) -> None:
    start = first_run(folder, "language_model", "gru")
    with pytest.raises(UserError, match="its model is gru, not lstm; leave --model out"):
        second_run(folder, start, model="lstm")
    with pytest.raises(UserError, match=r"has shape .* there, .* here; use the model options of that run"):
        second_run(folder, start, "model.width=32")
    with pytest.raises(UserError, match=r"it has no backbone.layers.1.*use the model options of that run"):
        second_run(folder, start, "model.depth=2")
    counted = first_run(folder, "language_model", "ngram", "model.width=128")
    with pytest.raises(UserError, match="ngram: counts the tokens of running text"):
        second_run(folder, counted)
    with pytest.raises(UserError, match=r"nowhere"):
        second_run(folder, folder / "nowhere")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilm", "no such run; the pretrained weights of this name are weights:minilm"),
        ("lora:weights:minilm", "name the weights alone, weights:minilm, and say how to use them with an option"),
        ("probe:hf:models/bert", "name the weights alone, hf:models/bert"),
        ("hf:", "hf: names no model; give the path of a folder or a .gguf file"),
    ],
)
def test_weights_by_a_wrong_name_are_refused_with_the_right_one(folder: Path, name: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        second_run(folder, name)
    assert message in str(refused.value)


@pytest.mark.parametrize("case", every_case(), ids=title)
def test_stages_hold_every_weight_once(case: Any) -> None:
    name, options = case
    config = find_config("models", name).model_validate({"width": 16, **options})
    try:
        model = config.assemble(language_model())
    except UserError:
        return  # seen with its own task above
    held = [p for stage in model.stages() for p in stage]
    assert len(held) == len(set(held)) == len(list(model.parameters()))


def test_frozen_stages_stay_and_lower_ones_learn_more_slowly() -> None:
    model: Any = find_config("models", "gpt").model_validate({"width": 16, "depth": 3}).assemble(language_model())
    freeze(model, 2)
    assert not model.embed.weight.requires_grad and not next(model.backbone.blocks[0].parameters()).requires_grad
    assert next(model.backbone.blocks[1].parameters()).requires_grad
    with pytest.raises(UserError, match="the model has 5 stages, and the last one must be trained"):
        freeze(model, 5)
    for optimizer in ("adamw", "sgd", "muon"):
        made = Optimizers(model, TrainConfig(optimizer=optimizer, rate=1.0, matrix_rate=1.0, stage_decay=0.5))
        rates = {p: group["lr"] for member in made.members for group in member.param_groups for p in group["params"]}
        assert set(rates) == {p for p in model.parameters() if p.requires_grad}
        assert rates[model.head.weight] == 1.0
        assert {rates[p] for p in model.backbone.blocks[2].parameters()} == {0.5}
        assert {rates[p] for p in model.backbone.blocks[1].parameters()} == {0.25}


def test_frozen_weights_do_not_move(folder: Path) -> None:
    start = first_run(folder, "masked_lm", "bert", "task.length=16")
    run = second_run(folder, start, "train.freeze=3", "train.stage_decay=0.9", "train.rate=0.1")
    before = load_file(RunFolder(start).model_files() / "model.safetensors")
    after = dict(run.model.named_parameters())
    moved = {name for name in after if name in before and not torch.equal(after[name], before[name])}
    assert not [name for name in moved if name.startswith(("embed", "backbone.positions", "backbone.blocks.0"))]
    assert [name for name in moved if name.startswith("backbone.blocks.3")]


def test_a_table_of_another_size_gives_the_rows_that_both_have() -> None:
    config = find_config("models", "gru").model_validate({"width": 16})
    small, large = alive(config.assemble(language_model(7))), alive(config.assemble(language_model(9)))
    told = transfer(large, dict(small.named_parameters()), "there")
    assert torch.equal(large.embed.weight[:7], small.embed.weight) and "weights copied from there" in told
    with pytest.raises(UserError, match=r"there: it has no backbone"):
        transfer(large, {"embed.weight": small.embed.weight}, "there")
