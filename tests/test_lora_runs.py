"""Runs with adapters: from the command line to a merged run, interrupted, moved, and refused."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from support import pairs_file, text

import seqloom
from seqloom import cli
from seqloom.compare.comparing import compare
from seqloom.core import memory
from seqloom.core.errors import RunError, UserError
from seqloom.lab import cost
from seqloom.layers.lora import WEIGHTS
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import model_config
from seqloom.runs.run import Run
from seqloom.train.loop import Trainer
from seqloom.train.transfer import transfer

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.long]

STILL = {"threads": 1, "batch": 4}
BASES = {
    "gpt": {"width": 16, "depth": 2, "heads": 2, "context": 16, "dropout": 0.1},
    "lstm": {"width": 16, "dropout": 0.1},
}

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and a language model of each kind to start from."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "book.txt").write_text(text(3000))
    (folder / "other.txt").write_text(text(3000, seed=1))
    lines = [line for line in text(2500, seed=2).split("\n") if line.strip()]
    rows = "".join(f"{line.strip()},{'cat' if 'cat' in line else 'none'}\n" for line in lines)
    (folder / "rows.csv").write_text("text,label\n" + rows)
    for model, options in BASES.items():
        trained_first(folder, folder / model, model, **options)
    return folder


def trained_first(desk: Path, out: Path, model: str, **options: Any) -> Run:
    return seqloom.fit(data=desk / "book.txt", model={"name": model, **options}, out=out, quiet=True,
                       train=STILL | {"steps": 12}, options={"task.length": 16}, choose=False)  # fmt: skip


def tuned(desk: Path, out: Path, model: str = "lstm", lora: dict[str, Any] | None = None, **options: Any) -> Run:
    """A run with adapters, on another text."""
    usual: dict[str, Any] = {"data": desk / "other.txt", "start": desk / model, "options": {"task.length": 16}}
    usual |= {"choose": False, "quiet": True} | options
    usual["train"] = STILL | {"steps": 6} | options.get("train", {})
    return seqloom.fit(out=out, lora={"rank": 2} | (lora or {}), **usual)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Command:
    """A command in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


@pytest.mark.parametrize("model", BASES)
def test_from_the_command_line_to_a_merged_run(run: Command, desk: Path, model: str) -> None:
    options = ["lora.rank=2", "lora.alpha=8", "train.steps=6", "train.threads=1", "task.length=16"]
    settings = [word for option in options for word in ("-o", option)]
    words = ["fit", "--data", desk / "other.txt", "--from", desk / model, "--out", "tuned", *settings]
    code, _, said = run(*words)
    assert code == 0 and "LoRA of rank 2 on" in said and "parameters are trained" in said
    summary = json.loads(run("fit", *words[1:], "--json")[1])  # finished already
    assert 0 < summary["trained_parameters"] < summary["parameters"]
    assert {file.name for file in Path("tuned/model").iterdir()} >= {"adapter_config.json", WEIGHTS}
    assert not Path("tuned/model/model.safetensors").exists()

    code, shown, said = run("merge", "tuned", "--out", "plain")
    assert code == 0 and "plain: " in shown
    scores = [json.loads(run("eval", name, "--data", desk / "book.txt", "--json")[1]) for name in ("tuned", "plain")]
    assert scores[0]["loss"] == pytest.approx(scores[1]["loss"], rel=1e-6)
    texts = [run("generate", name, "--prompt", "the", "--max-new", 12, "--seed", 1)[1] for name in ("tuned", "plain")]
    assert texts[0] == texts[1] and len(texts[0]) > 4
    if model == "gpt":  # cells are not quantised
        exact = json.loads(run("eval", "tuned", "--data", desk / "book.txt", "--int8", "--json")[1])
        assert exact["loss"] == pytest.approx(exact["float32"]["loss"], rel=0.05)
    code, _, said = run("fit", "--data", desk / "book.txt", "--from", "plain", "--out", "next", *settings[4:])
    assert code == 0 and "weights copied from plain, 0 initialised" in said


def test_an_interrupted_merge_is_done_again_and_a_finished_one_left_alone(
    run: Command, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(desk, tmp_path / "tuned")
    assert run("merge", "tuned", "--out", "whole")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "publish_model", lambda self, files: (_ for _ in ()).throw(OSError(28, "full")))
        assert run("merge", "tuned", "--out", "plain")[0] == 1
    assert run("merge", "tuned", "--out", "plain")[0] == 0
    files = {path: path.stat().st_mtime_ns for path in Path("plain").rglob("*") if path.is_file()}
    whole = [path for path in Path("whole").rglob("*") if path.is_file() and path.name != ".lock"]
    assert all((Path("plain") / path.relative_to("whole")).read_bytes() == path.read_bytes() for path in whole)
    assert run("merge", "tuned", "--out", "plain")[0] == 0
    assert all(path.stat().st_mtime_ns == time for path, time in files.items() if path.name != ".lock")
    code, _, said = run("merge", "tuned", "--out", desk / "lstm")
    assert code == 2 and "not empty" in said
    Path("tuned/summary.json").unlink()
    code, _, said = run("merge", "tuned", "--out", "early")
    assert code == 2 and "tuned: not finished yet; run its fit command again" in said and not Path("early").exists()


def test_another_task_has_a_head_of_its_own_and_embeddings_stay(desk: Path, tmp_path: Path) -> None:
    flags = {"task": "classification", "data": desk / "rows.csv", "options": {"task.longest": 16}}
    model = tuned(desk, tmp_path / "run", "gpt", train={"rate": 0.1}, **flags)
    before = load_file(desk / "gpt/model/model.safetensors")
    after = {name.replace(".base_layer", ""): p for name, p in model.model.named_parameters()}
    frozen = [name for name in after if name in before and not name.startswith("head.")]
    rows = len(before["embed.weight"])
    assert len(after["embed.weight"]) == rows + 1, "one more, for a mask"
    after["embed.weight"] = after["embed.weight"][:rows]
    assert len(frozen) > 10 and all(torch.equal(after[name], before[name]) for name in frozen)
    saved = load_file(tmp_path / "run/model" / WEIGHTS)
    own = {name.removeprefix("base_model.model.") for name in saved if ".lora_" not in name}
    assert own == {"embed.parts.weight", *(n for n in model.model.state_dict() if n.startswith("head."))}
    config = json.loads((tmp_path / "run/model/adapter_config.json").read_bytes())
    assert set(config["modules_to_save"]) == {"head", "embed.parts"} and config["r"] == 2
    (answer,) = seqloom.merge(tmp_path / "run", out=tmp_path / "plain").predict(texts=["the cat"])
    (same,) = seqloom.load(tmp_path / "run").predict(texts=["the cat"])
    assert answer["label"] == same["label"] in ("cat", "none")
    assert answer["probability"] == pytest.approx(same["probability"], abs=1e-5)

    plain = model_config(model.config).assemble(model.task)  # what peft gets: the model, and the weights of the base
    transfer(plain, before, "gpt")
    theirs = PeftModel.from_pretrained(plain, str(tmp_path / "run/model")).eval().base_model.model
    inputs, mask = torch.randint(9, (3, 12)), torch.arange(12) < torch.tensor([12, 5, 1])[:, None]
    torch.testing.assert_close(theirs.encode(inputs, mask), model.model.encode(inputs, mask), rtol=1e-5, atol=1e-5)


def test_source_and_target_are_explained_with_adapters(run: Command, desk: Path, tmp_path: Path) -> None:
    pairs = pairs_file(tmp_path / "pairs.tsv")
    shared: dict[str, Any] = {"task": "translation", "data": pairs, "choose": False, "quiet": True}
    shared["tokenizer"] = {"kind": "words", "split": "space", "joint": True}
    shared["options"] = {"task.batch_tokens": 0, "task.scored": 2, "task.max_new": 8}
    seqloom.fit(model={"name": "seq2seq", "width": 16}, out="base", train=STILL | {"steps": 2}, **shared)
    made = seqloom.fit(start="base", out="tuned", train=STILL | {"steps": 2}, lora={"rank": 2}, **shared)
    assert next(iter(made.predict(texts=["the cat"])))["prediction"] is not None
    assert run("explain", "tuned", "--text", "the cat sees", "--out", "page.html")[0] == 0
    assert Path("page.html").stat().st_size > 1000


@pytest.mark.parametrize("model", BASES)
def test_interrupted_and_issued_again_equals_uninterrupted(
    desk: Path, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = {"steps": 12, "save_every": 2, "evaluate_every": 5, "accumulate": 2, "log_every": 1}
    options: dict[str, Any] = {"model": model, "train": busy, "lora": {"rank": 2, "dropout": 0.2}}
    tuned(desk, tmp_path / "whole", **options)
    save = Trainer.save
    for stop in (2, 7, 8):

        def killed(trainer: Trainer, stop: int = stop) -> None:
            save(trainer)
            if trainer.progress.step >= stop:
                raise KeyboardInterrupt

        monkeypatch.setattr(Trainer, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            tuned(desk, tmp_path / "broken", **options)
    monkeypatch.setattr(Trainer, "save", save)
    tuned(desk, tmp_path / "broken", **options)
    files = [sorted(path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*.safetensors"))
             for name in ("whole", "broken")]  # fmt: skip
    assert files[0] == files[1] and len(files[0]) > 6
    for file in files[0]:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "broken" / file).read_bytes(), file


def test_how_long_it_takes_is_measured_on_a_copy(desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    made = seqloom.fit(data=desk / "other.txt", start=desk / "lstm", out=tmp_path / "run", lora={"rank": 2},
                       train={"threads": 1, "minutes": 0.02}, options={"task.length": 16})  # fmt: skip
    assert "training: " in capsys.readouterr().err and made.summary["steps"] > 0


def test_a_checkpoint_holds_adapters_head_and_their_moments_alone(desk: Path, tmp_path: Path) -> None:
    made = tuned(desk, tmp_path / "run", "gpt", train={"optimizer": "muon"})
    files = RunFolder(tmp_path / "run").checkpoints()[0][1]
    trained = {name for name, p in made.model.named_parameters() if ".lora_" in name or name.startswith("head.")}
    assert load_file(files / "model.safetensors").keys() == trained
    assert {name.rpartition("/")[0] for name in load_file(files / "optimizer.safetensors")} == trained


def test_frozen_stages_have_adapters_that_do_not_learn(desk: Path, tmp_path: Path) -> None:
    made = tuned(desk, tmp_path / "run", "gpt", train={"freeze": 2, "stage_decay": 0.5})
    moved = {name for name, p in made.model.named_parameters() if ".lora_B" in name and p.any()}
    assert moved and all(".blocks.1." in name for name in moved)


def test_embeddings_and_norms_are_trained_in_full_when_asked_for(desk: Path, tmp_path: Path) -> None:
    made = tuned(desk, tmp_path / "run", "gpt", {"targets": ["qkv", "feed.*"], "full": "embed,norm_1"})
    saved = load_file(tmp_path / "run/model" / WEIGHTS)
    assert {"embed.weight", "backbone.blocks.1.norm_1.weight"} <= {n.removeprefix("base_model.model.") for n in saved}
    assert not any(".attention.out." in name for name in saved)
    before = load_file(desk / "gpt/model/model.safetensors")["embed.weight"]
    assert not torch.equal(dict(made.model.named_parameters())["embed.weight"], before)


@pytest.mark.parametrize("full", [[], ["embed"]], ids=["frozen", "in full"])
def test_a_tied_head_stays_with_the_embedding(desk: Path, tmp_path: Path, full: list[str]) -> None:
    before = trained_first(desk, tmp_path / "tied", "gpt", **BASES["gpt"], tie=True).model
    made = tuned(desk, tmp_path / "run", lora={"full": full}, start=tmp_path / "tied")
    assert made.model.head.weight is made.model.embed.weight
    assert made.model.embed.weight.requires_grad == bool(full)
    assert torch.equal(made.model.embed.weight, before.embed.weight) != bool(full)
    assert torch.equal(made.model.head.bias, before.head.bias) != bool(full)
    again, merged = seqloom.load(tmp_path / "run"), seqloom.merge(tmp_path / "run", out=tmp_path / "plain")
    scores = [each.evaluate(desk / "book.txt")["loss"] for each in (made, again, merged)]
    assert scores[0] == scores[1] == pytest.approx(scores[2], rel=1e-6)
    assert ("base_model.model.head.weight" in load_file(tmp_path / "run/model" / WEIGHTS)) == bool(full)


def test_both_folders_may_move_together_but_not_apart(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    shutil.copytree(desk / "lstm", here / "base")
    monkeypatch.chdir(here)
    tuned(desk, Path("tuned"), start="base")
    record = json.loads(Path("tuned/run.json").read_bytes())
    assert record["base"]["folder"] == "../base" and len(record["base"]["sha256"]) == 64
    wanted = seqloom.load("tuned").evaluate(desk / "book.txt")["loss"]
    monkeypatch.chdir(tmp_path)
    here.rename(tmp_path / "there")
    assert seqloom.load("there/tuned").evaluate(desk / "book.txt")["loss"] == wanted
    (tmp_path / "there/base").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"there/tuned: holds only adapters; base, .* is missing: restore it"):
        seqloom.load("there/tuned")
    shutil.copytree(desk / "gpt", "there/base")
    with pytest.raises(
        RunError, match=r"belongs to other weights than those in there/base \(SHA-256 was \w+, is \w+\)"
    ):
        seqloom.load("there/tuned")


@pytest.mark.parametrize(
    ("lora", "message"),
    [
        ({"targets": ["qkv", "kqv"]}, "lora.targets=kqv: no matrix has this name; choose from attention.qkv"),
        ({"targets": ["embed"]}, "lora.targets=embed: no matrix has this name"),
        ({"full": ["tables"]}, "lora.full=tables: no part has this name; choose from embed"),
        ({"full": ["backbone"]}, "lora.full=backbone: leaves no matrix for an adapter"),
        ({"rank": 0, "alpha": 8}, "no adapters with lora.rank=0; set it too"),
        ({"rank": 5000}, "lora.rank=5000: no matrix to adapt has a rank above"),
        ({"rank": -1}, "lora.rank=-1: input should be greater than or equal to 0"),
        ({"ranks": 8}, "lora.ranks: no such option; did you mean lora.rank?"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_meant_is_refused_in_one_line(desk: Path, tmp_path: Path, lora: Any, message: str) -> None:
    with pytest.raises(UserError) as refused:
        tuned(desk, tmp_path / "run", "gpt", lora)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_adapters_need_weights_and_whole_ones(desk: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lora.rank=2: adapters need trained weights to start from; set --from RUN"):
        tuned(desk, tmp_path / "run", start=None)
    tuned(desk, tmp_path / "run")
    with pytest.raises(UserError, match=r"run: holds only adapters; make a plain .*: seqloom merge .*run --out NEW"):
        tuned(desk, tmp_path / "second", start=tmp_path / "run")
    with pytest.raises(UserError, match=r"is a different run \(lora.rank=4 \(was 2\)\)"):
        tuned(desk, tmp_path / "run", lora={"rank": 4})
    with pytest.raises(UserError, match=r"is a different run \(lora.rank=0 \(was 2\)\)"):
        tuned(desk, tmp_path / "run", lora={"rank": 0})
    with pytest.raises(UserError, match="lstm: nothing to merge; it has all its weights"):
        seqloom.merge(desk / "lstm", out=tmp_path / "plain")
    with pytest.raises(UserError, match="run: not empty; choose a new folder"):
        seqloom.merge(tmp_path / "run", out=tmp_path / "run")
    seqloom.merge(tmp_path / "run", out=tmp_path / "plain")
    with pytest.raises(UserError, match="plain: a merged run is not trained further; use it with --from"):
        tuned(desk, tmp_path / "plain", lora={"rank": 0}, train={"steps": 9})


def test_models_without_matrices_or_descent_are_refused(desk: Path, tmp_path: Path) -> None:
    counted = seqloom.fit(data=desk / "book.txt", model="ngram", out=tmp_path / "ngram", choose=False, quiet=True)
    with pytest.raises(UserError, match=r"not trained by gradient descent|has no encoder to start from"):
        tuned(desk, tmp_path / "run", start=counted.folder.path)


def test_memory_counts_frozen_weights_once(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr("seqloom.train.memory.require", lambda need, *_: asked.append(need))
        tuned(desk, tmp_path / "first", "gpt", {"targets": ["qkv"]})
        tuned(desk, tmp_path / "whole", "gpt", {"rank": 0})
    parameters = seqloom.load(desk / "gpt").summary["parameters"]
    assert asked[1] - asked[0] > 4 * 3 * parameters
    monkeypatch.setattr(memory, "available", lambda: asked[0])
    tuned(desk, tmp_path / "second", "gpt", {"targets": ["qkv"]})
    with pytest.raises(RunError, match="training needs about"):
        tuned(desk, tmp_path / "third", "gpt", {"rank": 0})


def test_a_missing_library_is_one_line(run: Command, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "peft"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "peft", None)
    words = ["fit", "--data", desk / "other.txt", "--from", desk / "lstm", "--out", "r", "-o", "lora.rank=2"]
    code, _, said = run(*words, "-o", "train.steps=2")
    assert code == 2 and "seqloom: LoRA needs the peft package: pip install 'seqloom[lora]'" in said


def test_a_comparison_of_full_and_low_rank_fine_tuning(
    desk: Path, tmp_path: Path, jobs_here: None, short_probes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "CONTEXTS", {unit: contexts[:1] for unit, contexts in cost.CONTEXTS.items()})
    monkeypatch.setattr(cost, "LENGTHS", {unit: lengths[:1] for unit, lengths in cost.LENGTHS.items()})
    models = ["whole=gpt", "small=gpt:lora.rank=2:train.rate=1e-2"]
    settings = {"task.length": 16, "train.batch": 4, "train.start": str(desk / "gpt")}
    how: dict[str, Any] = {"data": desk / "other.txt", "budget": "tokens=1500", "trials": 1, "seeds": 1, "quiet": True}
    how |= {"task": "language_model", "options": settings}
    done = compare(models=models, out=tmp_path / "compared", **how)
    found = {entry["name"]: entry for entry in done.result["entries"]}
    assert found.keys() == {"whole", "small", "ngram"}, "and what needs no training"
    folder = tmp_path / "compared/runs"
    assert (folder / "small/seed-1/model" / WEIGHTS).exists() and not (folder / "whole/seed-1/model" / WEIGHTS).exists()
    known = [
        json.loads((path / "run.json").read_bytes())["tokenizer"]["hash"]
        for path in (desk / "gpt", folder / "small/seed-1")
    ]
    assert known[0] == known[1]
    with pytest.raises(UserError, match="have their size; leave it out"):
        compare(models=models, out=tmp_path / "other", params=9000, **how)
