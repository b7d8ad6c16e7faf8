"""Models that transformers wrote: in ours they answer as they do there, and every task and command takes them."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
import torch
from foreign import DECODERS, ENCODERS, TEXT, TWO_SIDED, WRAPPED, WRAPPED_ENCODERS
from pydantic import ValidationError
from support import pairs_file
from torch import Tensor

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.core.taps import record
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.decode.pick import Choice
from seqloom.decode.stream import draw, stream
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config, model_config
from seqloom.runs.run import Run, load
from seqloom.runs.source import run_folder
from seqloom.tasks.classification.task import Config as Classification
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.pretrained import Pretrained
from seqloom.train.checkpoint import load_file
from seqloom.train.transfer import transfer

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]

BRIEF = ["train.steps=2", "train.threads=1"]
GREEDY = Choice(temperature=0)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def made(shelf: Path, name: str) -> tuple[str, Any]:
    """The source of weights of a family, and the model as transformers loads it."""
    import transformers

    every = {**DECODERS, **WRAPPED, **TWO_SIDED, **ENCODERS, **WRAPPED_ENCODERS}
    head = "ForConditionalGeneration" if name in TWO_SIDED else "ForCausalLM"
    pieces = name in {**ENCODERS, **WRAPPED_ENCODERS}
    folder = shelf / name.replace(" ", "-")
    if not folder.exists():
        foreign.save(folder, *every[name], head="Model" if pieces else head, pieces=pieces)
    classes = {"Model": transformers.AutoModel, "ForCausalLM": transformers.AutoModelForCausalLM}
    kind = classes.get("Model" if pieces else head, transformers.AutoModelForSeq2SeqLM)
    return f"hf:{folder}", kind.from_pretrained(folder, dtype=torch.float32).eval()


def ids(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(3, 280, (rows, length), generator=torch.Generator().manual_seed(seed))


def near(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5 * theirs.abs().max().item())


@pytest.mark.parametrize("name", [*DECODERS, *WRAPPED])
def test_a_decoder_answers_as_in_transformers_and_writes_the_same_tokens(shelf: Path, name: str) -> None:
    source, theirs = made(shelf, name)
    run = load(source)
    assert run.config.model["name"] == ("gpt" if name in DECODERS else "pretrained")
    read = ids(3, 60)
    with torch.inference_mode():
        wanted = theirs(read).logits
        near(run.model(read)[0], wanted)
        near(run.model(read[:, 30:], run.model.begin(read[:, :30]))[0], wanted[:, 30:])
    prompts = ids(2, 8, seed=1)
    theirs, ours = theirs.double(), run.model.double()
    how = {"max_new_tokens": 50, "do_sample": False, "eos_token_id": None}
    wanted = theirs.generate(prompts, attention_mask=torch.ones_like(prompts), **how)[:, 8:]
    written = torch.stack(list(stream(ours, prompts.tolist(), max_new=50, choose=GREEDY)), dim=1)
    assert torch.equal(written, wanted)


@pytest.mark.parametrize("name", TWO_SIDED)
def test_an_encoder_decoder_answers_as_in_transformers_and_writes_the_same_tokens(shelf: Path, name: str) -> None:
    source, theirs = made(shelf, name)
    run = load(source)
    sources, targets = ids(3, 9), ids(3, 7, seed=1)
    mask = torch.arange(9) < torch.tensor([9, 4, 6])[:, None]
    with torch.inference_mode():
        wanted = theirs(input_ids=sources, attention_mask=mask.long(), decoder_input_ids=targets).logits
        near(run.model(targets, run.model.begin(sources, mask))[0], wanted)
    theirs, ours = theirs.double(), run.model.double()
    how = {"max_new_tokens": 30, "do_sample": False, "num_beams": 1, "eos_token_id": None, "forced_eos_token_id": None}
    wanted = theirs.generate(sources, attention_mask=mask.long(), **how)[:, 1:]
    with torch.inference_mode():
        state = ours.begin(sources, mask)
    first = torch.full((3,), run.tokenizer.target.bos)
    assert torch.equal(torch.stack(list(draw(ours, state, first, max_new=30, choose=GREEDY)), dim=1), wanted)


def encoder(source: str) -> tuple[Any, Any]:
    """A classifier that starts from these weights, and its task."""
    folder = RunFolder(run_folder(source))
    files = folder.model_files()
    task = Classification.model_validate({}).build(LabelledTokenizer(Tokenizer.load(files), ["a", "b"]))
    model = model_config(folder.config()).assemble(task).eval()
    transfer(model, load_file(files / "model.safetensors"), source, blank=True)
    return model, task


@pytest.mark.parametrize("name", [*ENCODERS, *WRAPPED_ENCODERS])
def test_an_encoder_gives_the_vectors_of_transformers(shelf: Path, name: str) -> None:
    source, theirs = made(shelf, name)
    model, _ = encoder(source)
    read = ids(3, 12) % 60 + 5  # after the special tokens
    mask = torch.arange(12) < torch.tensor([12, 5, 8])[:, None]
    with torch.inference_mode():
        wanted = theirs(read, attention_mask=mask.long()).last_hidden_state
        near(model.represent(read, mask)[mask], wanted[mask])


def test_two_texts_have_the_token_types_of_bert(shelf: Path) -> None:
    source, theirs = made(shelf, "bert")
    model, task = encoder(source)
    own = task.tokenizer
    first, second = (np.append(own.encode(text), own.eos) for text in ("the small cat", "a dog moved slowly"))
    read = torch.from_numpy(task.sequence([first, second]))[None]
    assert read[0, 0] == own.bos
    types = torch.tensor([[0] * (1 + len(first)) + [1] * len(second)])
    with torch.inference_mode():
        near(model.represent(read), theirs(read, token_type_ids=types).last_hidden_state)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("data"), random.Random(0)
    words = TEXT.replace(";", "").replace(",", "").replace(".", "").split()
    lines = [chance.choices(words, k=8) for _ in range(60)]
    (folder / "book.txt").write_text("\n".join(map(" ".join, lines)))
    rows = "".join(f"{' '.join(line)},{'cat' if 'cat' in line else 'none'}\n" for line in lines)
    (folder / "rows.csv").write_text("text,label\n" + rows)
    pairs_file(folder / "pairs.tsv", 40)
    (folder / "names.conll").write_text("".join(f"Ada{n} B-PER\nsees O\nRome B-LOC\n\n" for n in range(40)))
    asked = [{"context": f"the cat sees {n} dogs", "question": "how many?", "answer": str(n)} for n in range(40)]
    found = [row | {"answer_start": row["context"].index(row["answer"])} for row in asked]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    return folder


def tuned(desk: Path, out: Path, source: str, task: str, data: str, *options: str) -> Run:
    return fit(task=task, data=str(desk / data), start=source, out=out, overrides=[*BRIEF, *options], quiet=True)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama grouped", "gemma", "electra", "t5"])
def test_a_classifier_starts_from_any_of_them(shelf: Path, desk: Path, tmp_path: Path, name: str) -> None:
    source, _ = made(shelf, name)
    run = tuned(desk, tmp_path / "run", source, "classification", "rows.csv")
    assert run.config.tokenizer["kind"] == "pretrained" and run.config.train.start == source
    (answer,) = load(tmp_path / "run").predict(texts=["the cat"])
    assert answer["label"] in ("cat", "none")
    assert fit(task="classification", data=str(desk / "rows.csv"), start=source, out=tmp_path / "run", quiet=True,
               overrides=BRIEF).summary["steps"] == 2  # fmt: skip


@pytest.mark.parametrize("name", ["gpt2", "llama scaled", "gpt-neox", "gpt2 exact gelu"])
def test_a_language_model_goes_on_from_one_with_its_output_layer(
    shelf: Path, desk: Path, tmp_path: Path, name: str
) -> None:
    source, _ = made(shelf, name)
    before = load(source).evaluate(str(desk / "book.txt"))
    still = ["train.rate=1e-30", "task.length=64", "task.context=128", "task.stride=64"]
    run = tuned(desk, tmp_path / "run", source, "language_model", "book.txt", *still)
    assert run.evaluate(str(desk / "book.txt"))["loss"] == pytest.approx(before["loss"], rel=1e-4)
    assert isinstance(run.generate("the cat", max_new=5, seed=0), str)


@pytest.mark.parametrize(
    ("name", "task", "data", "options"),
    [
        ("bert", "tagging", "names.conll", []),
        (
            "bert",
            "question_answering",
            "questions.jsonl",
            ["task.window=32", "task.stride=4", "task.longest_question=8"],
        ),
        (
            "gpt2",
            "question_answering",
            "questions.jsonl",
            ["task.window=32", "task.stride=4", "task.longest_question=8"],
        ),
        ("roberta", "masked_lm", "book.txt", ["task.length=16"]),
        ("bart", "translation", "pairs.tsv", ["task.scored=4"]),
        ("llama grouped", "translation", "pairs.tsv", ["task.scored=4"]),
    ],
)
def test_every_task_on_words_starts_from_them(
    shelf: Path, desk: Path, tmp_path: Path, name: str, task: str, data: str, options: list[str]
) -> None:
    source, _ = made(shelf, name)
    run = tuned(desk, tmp_path / "run", source, task, data, *options)
    assert run.summary["steps"] == 2 and run.summary["scores"]["valid"]


def test_what_is_not_said_is_chosen_for_fine_tuning(shelf: Path, desk: Path, tmp_path: Path) -> None:
    source, _ = made(shelf, "bert")
    tuned(desk, tmp_path / "run", source, "classification", "rows.csv")
    chosen = {choice["path"]: choice for choice in RunFolder(tmp_path / "run").record()["chosen"]}
    assert chosen["train.optimizer"]["value"] == "adamw" and chosen["train.rate"]["value"] <= 3e-4
    assert chosen["task.word_dropout"]["value"] == 0 and "pretrained" in chosen["train.rate"]["reason"]
    assert "model.width" not in chosen and "tokenizer.kind" not in chosen


def test_the_weights_decide_the_model(shelf: Path, desk: Path, tmp_path: Path) -> None:
    source, _ = made(shelf, "bert")
    with pytest.raises(UserError, match=r"model.width=32: the weights of hf:.* have 16; leave it out"):
        tuned(desk, tmp_path / "run", source, "classification", "rows.csv", "model.width=32")
    with pytest.raises(UserError, match="its model is bert, not lstm; leave --model out"):
        fit(task="classification", data=str(desk / "rows.csv"), start=source, model="lstm", quiet=True)
    run = tuned(desk, tmp_path / "run", source, "classification", "rows.csv", "model.dropout=0.3", "model.width=16")
    assert run.config.model["dropout"] == 0.3
    with pytest.raises(UserError, match="an encoder without an output layer; train one: seqloom fit"):
        load(source)
    with pytest.raises(UserError, match="language_model needs a model that is causal"):
        tuned(desk, tmp_path / "other", source, "language_model", "book.txt")


def test_a_converted_model_can_be_watched_and_quantised(shelf: Path) -> None:
    source, _ = made(shelf, "llama grouped")
    run, small, read = load(source), load(source, int8=True), ids(2, 20)
    with torch.inference_mode(), record(run.model, "*.attention.weights") as trace:
        wanted = run.model(read)[0]
        assert len(trace) == 2
    with torch.inference_mode():
        found = small.model(read)[0]
    assert (found - wanted).abs().max() < 0.1 * wanted.abs().max()


def test_a_model_is_converted_once_and_again_when_it_changes(shelf: Path, tmp_path: Path) -> None:
    foreign.save(tmp_path / "m", *DECODERS["gpt2"])
    first = run_folder(f"hf:{tmp_path / 'm'}")
    written = (first / "run.json").stat().st_mtime_ns
    assert run_folder(f"hf:{tmp_path / 'm'}") == first and (first / "run.json").stat().st_mtime_ns == written
    foreign.save(tmp_path / "m", "GPT2", {**foreign.GPT2, "n_layer": 1})
    assert run_folder(f"hf:{tmp_path / 'm'}") != first


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_commands_take_a_source_where_they_take_a_run(
    shelf: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    source, _ = made(shelf, "llama grouped")
    code, out, _ = call(monkeypatch, capsys, "generate", source, "--prompt", "the cat", "--max-new", "5", "--json")
    assert code == 0 and json.loads(out)["texts"]
    code, out, _ = call(monkeypatch, capsys, "eval", source, "--data", str(desk / "book.txt"), "--json")
    assert code == 0 and json.loads(out)["bits_per_byte"] > 0
    source, _ = made(shelf, "bart")
    code, out, _ = call(monkeypatch, capsys, "predict", source, "--text", "the cat", "--json")
    assert code == 0 and "prediction" in json.loads(out)


def test_a_name_that_is_no_folder_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"hf:/nowhere/at/all: no such folder or file"):
        run_folder("hf:/nowhere/at/all")
    with pytest.raises(UserError, match=r"hf:some/model: no such folder, and the hub could not be asked"):
        import huggingface_hub.constants

        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        run_folder("hf:some/model")
    with pytest.raises(UserError, match=r"weights:minilm: not installed; run: seqloom weights minilm"):
        run_folder("weights:minilm")
    with pytest.raises(UserError, match=r"unknown set of weights 'minlm'; did you mean 'minilm'"):
        run_folder("weights:minlm")


def test_a_model_that_remembers_otherwise_is_refused_in_one_line(tmp_path: Path) -> None:
    foreign.save(tmp_path / "m", "Mamba", {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 2})
    with pytest.raises(UserError, match=r"hf:.*mamba: it does not remember by keys and values"):
        run_folder(f"hf:{tmp_path / 'm'}")
    with pytest.raises(UserError, match=r"transformers does not make it"):
        find_config("models", "pretrained")(architecture="no such thing").build()
    with pytest.raises(ValidationError, match="must be a JSON object"):
        find_config("models", "pretrained")(config="[1]")


def tokenizer(source: str) -> Pretrained:
    found = Tokenizer.load(RunFolder(run_folder(source)).model_files())
    assert isinstance(found, Pretrained)
    return found


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_texts_become_the_ids_of_transformers_and_back(shelf: Path, name: str) -> None:
    from transformers import AutoTokenizer

    source, _ = made(shelf, name)
    own = tokenizer(source)
    theirs = AutoTokenizer.from_pretrained(source.removeprefix("hf:"))
    for text in (TEXT, "The naïve 猫 sees 3 dogs…", "", " two  spaces\nand a line"):
        assert own.encode(text).tolist() == theirs(text, add_special_tokens=False).input_ids
        if name == "gpt2":
            assert own.decode(own.encode(text)) == text
    read, spans = own.spans("the small cat")
    assert read.tolist() == own.encode("the small cat").tolist() and spans[0].tolist()[0] == 0
    assert ["the small cat"[a:b] for a, b in spans.tolist()] == (
        ["the", "small", "cat"] if name == "bert" else ["the", "smal", "l", "cat"]
    )
    assert [found.tolist() for found in own.encode_many(["the", "cat"])] == [
        own.encode(t).tolist() for t in ("the", "cat")
    ]


def test_prompts_begin_with_the_token_that_the_library_puts_before_a_text(tmp_path: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, processors

    theirs = foreign.save(tmp_path, "Llama", foreign.LLAMA)
    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("the cat").ids[0] != 1
    own = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    own.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    own.save(str(tmp_path / "tokenizer.json"))
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path)("the cat", return_tensors="pt").input_ids
    assert ids[0, 0] == 1
    wanted = theirs.generate(ids, max_new_tokens=20, do_sample=False, eos_token_id=None)[0, ids.size(1) :].tolist()
    run = load(f"hf:{tmp_path}")
    assert [token for (token,) in run.stream("the cat", max_new=20, temperature=0)] == wanted
    assert next(iter(run.stream("", max_new=1, temperature=0))) == [int(theirs(ids[:, :1]).logits[0, -1].argmax())]


def test_special_tokens_in_a_text_are_text_unless_a_template_means_them(shelf: Path) -> None:
    own = tokenizer(made(shelf, "gpt2")[0])
    assert own.eos not in own.encode("a </s> b") and own.eos in own.encode_marked("a </s> b")
    assert (own.pad, own.bos, own.eos, own.unk) == (0, 1, 2, None) and own.name(2) == "</s>"
    assert own.decode([own.bos, *own.encode("the cat"), own.eos]) == "the cat"
    with pytest.raises(UserError, match="not valid text"):
        own.encode("\ud800")


def test_a_tokenizer_can_be_made_from_its_parts(shelf: Path, tmp_path: Path) -> None:
    whole = made(shelf, "gpt2")[0].removeprefix("hf:")
    foreign.save(tmp_path / "m", *DECODERS["gpt2"])
    parts = json.loads((tmp_path / "m" / "tokenizer.json").read_text())["model"]
    os.remove(tmp_path / "m" / "tokenizer.json")
    (tmp_path / "m" / "vocab.json").write_text(json.dumps(parts["vocab"]))
    (tmp_path / "m" / "merges.txt").write_text(
        "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in parts["merges"])
    )
    same = tokenizer(f"hf:{tmp_path / 'm'}").encode(TEXT)
    assert same.tolist() == tokenizer(f"hf:{whole}").encode(TEXT).tolist()
    for part in ("vocab.json", "merges.txt"):
        os.remove(tmp_path / "m" / part)
    with pytest.raises(UserError, match=r"no tokenizer.json, and no vocab.txt"):
        run_folder(f"hf:{tmp_path / 'm'}")
    (tmp_path / "m" / "tokenizer.model").write_bytes(b"\n\x05")
    with pytest.raises(UserError, match="its tokenizer is a sentencepiece file only; save the fast one"):
        run_folder(f"hf:{tmp_path / 'm'}")


def test_texts_in_another_language_are_refused_with_advice_that_can_be_followed(shelf: Path, tmp_path: Path) -> None:
    source, _ = made(shelf, next(iter(ENCODERS)))
    lines = [f"{'好' if n % 2 else '差'}的一部电影，{n},{n % 2}" for n in range(30)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="unknown to the tokenizer of the pretrained weights") as refused:
        fit(task="classification", data=str(tmp_path / "rows.csv"), start=source, out=tmp_path / "run", quiet=True)
    assert "tokenizer." not in str(refused.value)
