"""Classification by prompting: labels are scored by a language model, and the result is an ordinary run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from seqloom.adapt.merge import merge
from seqloom.core.errors import UserError
from seqloom.data.shapes.labelled.reading import open_labelled
from seqloom.data.shapes.labelled.shape import SHAPE
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.decode.shots import draw_shots
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.run import load
from seqloom.tasks.classification.prompted import Prompted, PromptHead
from seqloom.tasks.classification.task import Config
from seqloom.tokenizers.characters import Characters

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]

CAUSAL = [("gpt", {"context": 400}), ("gpt", {"window": 30}), ("lstm", {}), ("mingru", {})]
TEXTS = ["a fine film", "dull and long, so long that one sleeps", "{label} is text", "ok"]
SMALL = {**foreign.LLAMA, "num_key_value_heads": 2, "max_position_embeddings": 700, "tie_word_embeddings": True}


def rows_file(folder: Path, count: int = 40) -> Path:
    path = folder / "rows.csv"
    lines = [f"the cat {n} sees a {'small' if n % 2 else 'old'} dog,{'bad' if n % 2 else 'good'}" for n in range(count)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny decoder of transformers with random weights."""
    folder = tmp_path_factory.mktemp("models") / "llama"
    foreign.save(folder, "Llama", SMALL)
    return f"hf:{folder}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rows_file(tmp_path_factory.mktemp("data"))


def prompted(model: str, options: dict[str, Any], data: Path, **settings: Any) -> tuple[Prompted, Any, Any]:
    """A task with letters as tokens, a model with random weights, and training rows."""
    known = LabelledTokenizer(Characters.train(["".join(map(chr, range(32, 127))) + "\n"] * 3), ["good", "bad"])
    task = Config.model_validate({"prompt": "default", **settings}).build(known)
    assert isinstance(task, Prompted)
    torch.manual_seed(0)
    network = find_config("models", model).model_validate({"width": 16, **options}).assemble(task).eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return task, network, SHAPE.prepare(open_labelled(str(data)), known)


def whole(task: Prompted, model: Any, texts: list[str]) -> torch.Tensor:
    """The scores of the labels, from sequences that are read at once, one by one."""
    head, found = model.part(PromptHead), torch.zeros(len(texts), len(task.labels))
    for row, text in enumerate(texts):
        for n, label in enumerate(task._label_ids(chat=False)):
            ids = np.concatenate((head.prefix.numpy(), task._query([text], head), label))
            with torch.inference_mode():
                chances = model(torch.from_numpy(ids)[None])[0][0].log_softmax(-1)
            places = range(len(ids) - len(label), len(ids))
            found[row, n] = sum(chances[place - 1, ids[place]] for place in places)
    return found


@pytest.mark.parametrize(("model", "options"), CAUSAL)
@pytest.mark.parametrize("shots", [0, 2])
def test_from_the_state_of_the_prefix_labels_score_as_in_whole_sequences(
    model: str, options: dict[str, Any], shots: int, data: Path
) -> None:
    task, network, rows = prompted(model, options, data, shots=shots)
    task.draw_prompt(network, rows, seed=3)
    found = task._scored_labels(network, [[text] for text in TEXTS])
    torch.testing.assert_close(found, whole(task, network, TEXTS), rtol=1e-4, atol=1e-4)
    with torch.inference_mode():
        read, longest = task.row_reader(network)
        row = torch.from_numpy(task._query([TEXTS[0]], network.part(PromptHead)))
        torch.testing.assert_close(read(row[None]), found[:1], rtol=1e-4, atol=1e-4)
    assert longest is None if network.limit is None else len(row) <= longest < network.limit


def test_calibration_subtracts_the_scores_of_an_input_without_content(data: Path) -> None:
    task, network, rows = prompted("gpt", {"context": 400}, data, shots=1)
    task.draw_prompt(network, rows, seed=0)
    plain = task._scored_labels(network, [[text] for text in (*TEXTS, "N/A")])
    wanted = (plain[:-1] - plain[-1:]).softmax(-1)
    answers = task.predict(network, [{"line": n, "source": text} for n, text in enumerate(TEXTS)])
    for row, answer in zip(wanted, answers, strict=True):
        assert [answer["probabilities"][label] for label in task.labels] == pytest.approx(row.tolist(), abs=1e-5)
    neutral = next(task.predict(network, [{"line": 1, "source": "N/A"}]))
    assert neutral["probability"] == pytest.approx(0.5, abs=1e-5)
    uncalibrated, *_ = prompted("gpt", {"context": 400}, data, shots=1, calibration=False)
    uncalibrated.draw_prompt(network, rows, seed=0)
    assert uncalibrated._predicted(network, [{"source": TEXTS[0]}])[0].tolist() == pytest.approx(plain[0].tolist())


def test_examples_are_balanced_nested_and_a_function_of_the_seed() -> None:
    labels = [n % 3 if n % 5 else -1 for n in range(200)]
    drawn = {k: draw_shots(labels, ["a", "b", "c"], k, seed=7) for k in (0, 1, 2, 4, 8)}
    for k, rows in drawn.items():
        assert sorted(labels[n] for n in rows) == sorted([0, 1, 2] * k) and len(set(rows)) == 3 * k
        assert rows == draw_shots(labels, ["a", "b", "c"], k, seed=7)
    assert set(drawn[1]) < set(drawn[2]) < set(drawn[4]) < set(drawn[8])
    assert drawn[8] != draw_shots(labels, ["a", "b", "c"], 8, seed=8)
    with pytest.raises(UserError, match="9 examples per label: only 1 of the rows have label 'b'; use fewer"):
        draw_shots([0] * 9 + [1], ["a", "b"], 9, seed=0)


def test_the_prompt_shows_instruction_examples_and_the_row(data: Path) -> None:
    task, network, rows = prompted("gpt", {"context": 400}, data, shots=1)
    task.draw_prompt(network, rows, seed=0)
    texts = list(rows.texts())
    drawn = network.part(PromptHead).drawn.tolist()
    shown = [f"Text: {texts[n][0]}\nCategory: {task.labels[rows.labels[n][0]]}\n\n" for n in drawn]
    opening = "Classify each text as one of: good, bad.\n\n"
    assert task.prompt(network, "a {label}") == opening + "".join(shown) + "Text: a {label}\nCategory:"


def test_rows_of_two_texts_show_both_and_the_longer_is_cut(tmp_path: Path) -> None:
    lines = [f"premise {n},hypothesis {n},{'bad' if n % 2 else 'good'}" for n in range(20)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text,second,label", *lines]) + "\n")
    task, network, _ = prompted("gpt", {"context": 400}, tmp_path / "pairs.csv", shots=1, longest=30)
    rows = SHAPE.prepare(open_labelled(str(tmp_path / "pairs.csv"), second="second"), task.known)
    task.draw_prompt(network, rows, seed=0)
    shown = task.prompt(network, "a" * 40, "b" * 4)
    assert "Text: premise " in shown and "\nSecond text: hypothesis " in shown
    assert shown.endswith(f"\n\nText: {'a' * 26}\nSecond text: bbbb\nCategory:")
    found = list(task.predict(network, [{"line": 1, "source": "a", "second": "b"}, {"line": 2, "source": ""}]))
    assert found[0]["label"] in task.labels and found[1]["reason"] == "an empty text"


def test_long_rows_are_cut_and_keep_the_cue(data: Path) -> None:
    task, network, rows = prompted("gpt", {"context": 120}, data, longest=200)
    task.draw_prompt(network, rows, seed=0)
    head = network.part(PromptHead)
    for text in ("x" * 119, "x" * 500):
        ids = task._query([text], head)
        assert task.known.tokenizer.decode(ids).endswith("x\nCategory:")
        assert len(head.prefix) + len(ids) + max(map(len, task._label_ids(False))) <= 120
    task._predicted(network, [{"source": "x" * 1000}, {"source": "y"}])


def test_a_prefix_longer_than_the_context_is_refused_with_its_size(data: Path) -> None:
    task, network, rows = prompted("gpt", {"context": 100}, data, shots=4)
    with pytest.raises(UserError, match=r"the prompt has \d+ tokens .* task.shots=4; the model's context is 100"):
        task.draw_prompt(network, rows, seed=0)


def classify(data: Path, source: str | None, out: Path, **settings: Any) -> Any:
    options = {"train.method": "prompt", "train.threads": 1, **settings}
    return fit(data=str(data), task="classification", start=source, out=out, options=options, quiet=True)


def test_a_prompted_run_is_a_run(source: str, data: Path, tmp_path: Path) -> None:
    template = tmp_path / "my.toml"
    template.write_text('example = "Seen: {text}\\nIt is {label}"\n[labels]\ngood = "the cat"\nbad = "a dog"\n')
    settings = {"task.prompt": str(template), "task.shots": 2, "train.seed": 5}
    run = classify(data, source, tmp_path / "run", **settings)
    valid = run.summary["scores"]["valid"]
    assert valid["protocol"].endswith("prompted with 2 examples per label; calibrated with an input without content")
    assert run.summary["steps"] == 0 and run.summary["trained_parameters"] == 0
    assert classify(data, source, tmp_path / "run", **settings).summary == run.summary
    template.unlink()
    again = load(tmp_path / "run")
    texts = ["the old cat", "a small dog sees"]
    assert list(again.predict(texts=texts)) == list(run.predict(texts=texts))
    assert again.evaluate(data)["accuracy"] == run.evaluate(data)["accuracy"]
    assert "Seen: a dog\nIt is" in again.task.prompt(again.model, "a dog")
    other = classify(data, source, tmp_path / "other", **{**settings, "train.seed": 6, "task.prompt": "default"})
    assert not torch.equal(other.model.part(PromptHead).drawn, run.model.part(PromptHead).drawn)


def test_the_weights_are_those_of_the_language_model(source: str, data: Path, tmp_path: Path) -> None:
    run, base = classify(data, source, tmp_path / "run"), load(source)
    assert json.loads(run.config.task["prompt"])["example"].startswith("Text: {text}")
    ids = torch.randint(3, 280, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(run.model(ids)[0], base.model(ids)[0], rtol=1e-5, atol=1e-4)


def test_a_prompted_run_holds_the_prompt_alone_and_merge_adds_the_weights(
    source: str, data: Path, tmp_path: Path
) -> None:
    run = classify(data, source, tmp_path / "run", **{"task.shots": 1})
    held = load_file(run.folder.model_files() / "model.safetensors")
    assert set(held) == {f"head.{name}" for name in ("prefix", "suffix", "drawn", "prior", "temperature")}
    assert run.summary["bytes"] < 5000 < run.summary["borrowed_bytes"]
    with pytest.raises(UserError, match=r"run: holds only a prompt; make a plain run of it first: seqloom merge"):
        classify(data, str(tmp_path / "run"), tmp_path / "second")
    merged = merge(tmp_path / "run", out=tmp_path / "whole")
    assert "base" not in merged.folder.record() and merged.summary["bytes"] > run.summary["borrowed_bytes"]
    assert list(merged.predict(texts=["the old cat"])) == list(run.predict(texts=["the old cat"]))


def test_a_run_of_our_own_can_be_prompted_and_what_is_no_language_model_cannot(data: Path, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(foreign.TEXT * 30)
    brief = {"steps": 2, "threads": 1}
    fit(
        data=str(tmp_path / "book.txt"),
        model={"name": "gru", "width": 16},
        train=brief,
        out=tmp_path / "lm",
        quiet=True,
    )
    run = classify(data, str(tmp_path / "lm"), tmp_path / "run", **{"task.shots": 1})
    assert run.summary["scores"]["valid"]["accuracy"] >= 0
    plain = fit(data=str(data), task="classification", model={"name": "gpt", "width": 16}, train=brief,
                out=tmp_path / "plain", quiet=True)  # fmt: skip
    with pytest.raises(UserError, match="does not predict the next token; start from a language model"):
        classify(data, str(plain.folder.path), tmp_path / "wrong")


def test_what_does_not_go_together_is_refused_in_one_line(source: str, data: Path, tmp_path: Path) -> None:
    wrong: list[tuple[str | None, dict[str, Any], str]] = [
        (None, {}, "needs a language model; set --from"),
        (source, {"lora.rank": 2}, "does not combine with adapters"),
        (
            source,
            {"train.method": "descent", "task.prompt": "default"},
            "task.prompt: train.method=descent has no prompt",
        ),
        (source, {"task.prompt": "missing.toml"}, "missing.toml: no such template"),
        (source, {"task.shots": 30}, r"only 1\d of the rows have label"),
        (source, {"data.separator": " "}, "chooses one label per row"),
    ]
    for n, (start, settings, message) in enumerate(wrong):
        with pytest.raises(UserError, match=message) as error:
            classify(data, start, tmp_path / str(n), **settings)
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=r"needs a template; set task\.prompt=default"):
        fit(data=str(data), task="classification", start=source, out=tmp_path / "bare", choose=False, quiet=True,
            train={"method": "prompt"})  # fmt: skip
    folder = tmp_path / "bert"
    foreign.save(folder, *foreign.ENCODERS["bert"], head="Model", pieces=True)
    with pytest.raises(UserError, match="reads from left to right; this one is bidirectional"):
        classify(data, f"hf:{folder}", tmp_path / "encoder")
    (tmp_path / "book.txt").write_text(foreign.TEXT * 30)
    with pytest.raises(UserError, match="language_model does not support it; classification does"):
        fit(data=str(tmp_path / "book.txt"), start=source, train={"method": "prompt"}, out=tmp_path / "t", quiet=True)
