"""Entries that start from trained weights: how they are written, and comparisons of models with several tokenizers."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compare_example import example
from safetensors.torch import load_file, save

from seqloom import compare, fit, load
from seqloom.compare.judging import of_tests
from seqloom.compare.plan import per_label
from seqloom.compare.record import check_score
from seqloom.compare.report import html
from seqloom.core.errors import UserError
from seqloom.data.portions import draw_by_label
from seqloom.data.shapes.labelled.reading import open_labelled
from seqloom.data.stream import TokenStream
from seqloom.lab.entries import Entry
from seqloom.lab.statistics import score_interval
from seqloom.runs.durable import MANIFEST
from seqloom.runs.folder import RunFolder
from seqloom.tasks.language_model import Config
from seqloom.tasks.language_model.perplexity import perplexity
from seqloom.tokenizers import train_tokenizer

TEXT = "the cat sat on the mat; the dog ate the bone. a bird sang in the tree, and the fish swam home.\n" * 40
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("jobs_here", "short_probes")]

SMALL: dict[str, Any] = {"trials": 0, "seeds": 2, "budget": "bytes=20k", "quiet": True}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder with a tokenizer of its own."""
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "text.txt").write_text(TEXT)
    model = {"name": "bert", "width": 16, "depth": 1, "heads": 2}
    settings: Any = {"tokenizer": {"kind": "characters"}, "train": {"steps": 2}, "quiet": True}
    fit(task="masked_lm", data=str(folder / "text.txt"), model=model, out=folder / "run", **settings)
    return folder / "run"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two labels that single words tell apart."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    words = {"good": ["fine", "lovely", "great"], "bad": ["poor", "awful", "dull"]}
    lines = [f"{label},the film number {n} is {words[label][n % 3]} indeed" for n in range(60) for label in words]
    path.write_text("label,text\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("run:{}", "run", ("train.start={}",)),
        ("full:run:{}", "full run", ("train.start={}",)),
        ("probe:run:{}", "probe run", ("train.start={}", "train.method=probe")),
        ("setfit:run:{}", "setfit run", ("train.start={}", "train.method=setfit")),
        ("lora:run:{}", "lora run", ("train.start={}", "lora.rank=8")),
        ("lora:run:{}:rank=2", "lora run rank=2", ("train.start={}", "lora.rank=2")),
        ("mine=lora:run:{}:train.rate=1e-3", "mine", ("train.start={}", "lora.rank=8", "train.rate=1e-3")),
    ],
)
def test_an_entry_names_weights_and_what_to_do_with_them(
    encoder: Path, text: str, name: str, options: tuple[str, ...]
) -> None:
    found = Entry.parse(text.format(encoder))
    assert (found.name, found.model) == (name, "bert")
    assert found.options == tuple(option.format(encoder) for option in options)


def test_a_way_without_weights_says_how_to_name_them() -> None:
    with pytest.raises(UserError, match=r"probe needs the weights to start from, for example probe:weights:minilm"):
        Entry.parse("probe:lstm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lora:run:{}:rank=0", "rank 0 means no adapters; give a rank above 0, or write full: instead of lora:"),
        ("full:run:{}:lora.rank=4", "full has no adapters; leave out lora.rank, or write lora: instead of full:"),
    ],
)
def test_an_entry_is_what_its_name_says(encoder: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Entry.parse(text.format(encoder))


def test_weights_that_a_task_cannot_use_are_not_answered_with_other_models(
    encoder: Path, rows: Path, tmp_path: Path
) -> None:
    models = ["lstm", f"prompt:run:{encoder}"]
    with pytest.raises(UserError, match=r"prompt run: .* language model") as refused:
        compare(data=str(rows), models=models, params="3k", out=tmp_path / "out", **SMALL)
    assert "usable models" not in str(refused.value)


def test_models_with_other_tokenizers_are_entries_of_one_comparison(encoder: Path, rows: Path, tmp_path: Path) -> None:
    models = [f"{way}:run:{encoder}" for way in ("full", "lora", "probe", "setfit")]
    found = compare(data=str(rows), models=["lstm", *models], params="3k", out=tmp_path / "out", per_label="4", **SMALL)
    entries = {entry["name"]: entry for entry in found.result["entries"]}
    assert set(entries) == {"lstm", "full run", "lora run", "probe run", "setfit run", "tfidf"}
    assert all(entry["state"] == "done" for entry in entries.values()), [e["error"] for e in entries.values()]
    assert found.result["protocol"]["tokenizers"] == 2 and found.result["protocol"]["metric"] == "accuracy"
    assert entries["lora run"]["trained_parameters"] < entries["lora run"]["parameters"]
    assert entries["full run"]["trained_parameters"] == entries["full run"]["parameters"]
    assert entries["probe run"]["fixed"] and len(entries["probe run"]["runs"]) == 1
    assert entries["lstm"]["epoch_tokens"] != entries["full run"]["epoch_tokens"], "words and characters"
    assert all([point["rows"] for point in entry["few"]["points"]] == [8] for entry in entries.values())
    costs = {name: entry["cost"] for name, entry in entries.items()}
    once = ("full run", "probe run", "setfit run")
    assert {costs[name]["measured_on"] for name in once} == {"full run"}, "the same network with other weights"
    assert all(costs[name]["measured_on"] == name for name in ("lora run", "lstm", "tfidf"))
    assert costs["probe run"]["latency"] == costs["full run"]["latency"] != costs["lora run"]["latency"]
    speeds = {name: entry["aspects"]["throughput"] for name, entry in entries.items()}
    assert speeds["setfit run"] == speeds["full run"] != speeds["lora run"] and not speeds["probe run"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Measured once, because they compute the same with different weights" in page
    assert "Score by number of labelled rows" in page and "with the size of their weights" in page
    assert {f.name.partition("-")[0] for f in (tmp_path / "out").glob("tokenizer*")} == {"tokenizer"}
    for name in ("lora-run", "probe-run"):
        (answer,) = load(tmp_path / "out" / "runs" / name / "seed-1").predict(texts=["a lovely film"])
        assert answer["label"] in ("good", "bad")
    trained = json.loads((tmp_path / "out" / "runs" / "full-run" / "seed-1" / "run.json").read_text())
    assert trained["config"]["tokenizer"]["kind"] == "characters"


def replace_files(run: Path, files: dict[str, bytes]) -> None:
    """Of its model, as if it had been trained to these."""
    folder = RunFolder(run)
    known = {path.name: path.read_bytes() for path in folder.model_files().iterdir() if path.name != MANIFEST}
    folder.publish_model(known | files)
    folder.write_summary(folder.summary() or {})


def test_weights_with_another_tokenizer_are_others_also_for_baselines(
    encoder: Path, rows: Path, tmp_path: Path
) -> None:
    start, out = shutil.copytree(encoder, tmp_path / "run"), tmp_path / "out"
    models = [f"full:run:{start}", f"probe:run:{start}"]
    asked: Any = SMALL | {"seeds": 1, "out": out}

    def again() -> dict[str, Any]:
        compare(data=str(rows), models=models, **asked)
        runs = {path.parent.name: path for path in out.glob("runs/*/seed-1")}
        return {
            name: (load(run).tokenizer.hash, (run / "result.json").stat().st_mtime_ns) for name, run in runs.items()
        }

    first, second = again(), again()
    assert set(first) == {"full-run", "probe-run", "tfidf"} and first == second, "finished jobs are kept"
    measured = (out / "measure" / "result.json").stat().st_mtime_ns
    replace_files(start, train_tokenizer("characters", [TEXT.replace(";", "%")]).files())
    third = again()
    assert all(third[name][0] != first[name][0] for name in first), "they read other tokens now"
    assert len({hash for hash, _ in third.values()}) == 1, "baselines share the tokenizer"
    assert (out / "measure" / "result.json").stat().st_mtime_ns != measured


def test_other_weights_to_start_from_begin_a_run_anew(encoder: Path, rows: Path, tmp_path: Path) -> None:
    start, out = shutil.copytree(encoder, tmp_path / "run"), tmp_path / "out"
    asked: Any = SMALL | {"seeds": 1, "out": out, "models": [f"probe:run:{start}", f"full:run:{start}"]}
    compare(data=str(rows), **asked)
    place = out / "runs" / "probe-run" / "seed-1"
    before = load(place).model.state_dict()
    more = {name: t + 1.0 for name, t in load_file(start / "model" / "model.safetensors").items()}
    replace_files(start, {"model.safetensors": save(more)})
    compare(data=str(rows), **asked)
    after = load(place).model.state_dict()
    assert all(torch.allclose(after[name], before[name] + 1.0) for name in after if name.startswith("backbone."))


def test_tokens_are_no_budget_for_different_tokenizers(encoder: Path, rows: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the models have different tokenizers; use bytes="):
        compare(
            data=str(rows), models=["lstm", f"full:run:{encoder}"], params="3k", out=tmp_path / "out",
            **SMALL | {"budget": "tokens=9k"},
        )  # fmt: skip


def test_language_models_with_different_tokenizers_are_ranked_by_bits_per_byte(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    settings: Any = {"tokenizer": {"kind": "bpe", "vocabulary": 300}, "train": {"steps": 2}, "quiet": True}
    fit(data=str(text), model={"name": "gru", "width": 16}, out=tmp_path / "run", **settings)
    models = ["lstm", f"full:run:{tmp_path / 'run'}"]
    found = compare(data=str(text), models=models, params="5k", out=tmp_path / "out", **SMALL | {"budget": "bytes=20k"})
    protocol, entries = found.result["protocol"], found.result["entries"]
    assert (protocol["metric"], protocol["tokenizers"]) == ("bits_per_byte", 2)
    assert all(entry["state"] == "done" for entry in entries)
    for entry in entries:
        assert len(entry["runs"][0]["pieces"]) == len(entries[0]["runs"][0]["pieces"])
        assert np.mean(entry["runs"][0]["pieces"]) == pytest.approx(entry["runs"][0]["score"], rel=0.02)


def test_pieces_in_bytes_cover_the_same_text_for_every_tokenizer() -> None:
    text, found = "ab cd, é中 " * 50, {}
    for kind in ("characters", "bytes", "bpe"):
        tokenizer = train_tokenizer(kind, [text], size=280)
        ids = tokenizer.encode(text)
        assert tokenizer.byte_counts is not None
        assert tokenizer.byte_counts[ids].sum() == len(text.encode())
        stream = TokenStream.of(ids, len(text.encode()), tokenizer.size)
        task = Config(scored_bytes=100).build(tokenizer)
        part = task._scored(stream)
        assert part.bytes <= 100 and part.bytes > 90, kind
        model = task_model(task)
        scores = perplexity(model, stream, pieces=10, byte_counts=tokenizer.byte_counts)
        assert np.mean(scores["pieces_of"]["bits_per_byte"]) == pytest.approx(scores["bits_per_byte"])
        found[kind] = scores["bits_per_byte"] / math.log2(tokenizer.size) * len(text.encode()) / (len(ids) - 1)
    assert all(value == pytest.approx(1.0, rel=0.05) for value in found.values()), "near the uniform guess at first"


def task_model(task: Any) -> Any:
    from seqloom.runs.registry import find_config

    model = find_config("models", "gru")(width=8).assemble(task)
    for parameter in model.parameters():
        parameter.data.mul_(0.01)
    return model


def test_rows_are_drawn_per_label_and_smaller_draws_are_part_of_larger_ones(rows: Path) -> None:
    source = open_labelled(str(rows), "text", "label", None, None)
    drawn = {n: list(draw_by_label(source, n, 5, lambda row: row.labels[0]).rows()) for n in (2, 8, 99)}
    assert [sum(row.labels[0] == label for row in drawn[8]) for label in ("good", "bad")] == [8, 8]
    assert {row.line for row in drawn[2]} < {row.line for row in drawn[8]}
    assert len(drawn[99]) == 120, "a label with fewer rows gives all it has"
    other = draw_by_label(source, 8, 6, lambda row: row.labels[0])
    assert [row.line for row in other.rows()] != [row.line for row in drawn[8]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["data.per_label=2", "data.examples=9"], "examples and per_label both say how many rows to draw"),
        (["data.per_label=2", "data.separator=;"], "per_label needs rows with one label each"),
    ],
)
def test_draws_that_contradict_are_refused(rows: Path, tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        fit(task="classification", data=str(rows), out=tmp_path / "x", overrides=options, quiet=True)


def test_a_prompted_language_model_is_an_entry_with_other_examples_for_every_seed(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    settings: Any = {"tokenizer": {"kind": "bytes"}, "train": {"steps": 2}, "quiet": True}
    model = {"name": "gpt", "width": 16, "depth": 1, "heads": 2, "context": 512}
    fit(data=str(tmp_path / "text.txt"), model=model, out=tmp_path / "writer", **settings)
    models = ["lstm", f"ask=prompt:run:{tmp_path / 'writer'}:shots=1"]
    found = compare(data=str(rows), models=models, params="3k", out=tmp_path / "out", per_label="4", **SMALL)
    entries = {entry["name"]: entry for entry in found.result["entries"]}
    ask = entries["ask"]
    assert ask["state"] == "done", ask["error"]
    assert [run["seed"] for run in ask["runs"]] == [1, 2] and not ask.get("fixed")
    assert ask["runs"][0]["tokens"] is None and ask["search"] == [], "nothing is trained or tuned"
    assert ask["few"]["points"][0]["rows"] == 8
    first, second = (load(tmp_path / f"out/runs/ask/seed-{n}") for n in (1, 2))
    assert first.task.prompt(first.model, "x") != second.task.prompt(second.model, "x")


def test_a_number_of_rows_that_fails_leaves_the_others(rows: Path, tmp_path: Path) -> None:
    assert per_label("32,8") == (8, 32)
    with pytest.raises(UserError, match=r"--per-label 0.4: give whole numbers"):
        per_label("0.4")
    result = example()
    for entry in result["entries"]:
        good = {"per_label": 8, "rows": 16, "score": {"mean": 0.7, "low": 0.6, "high": 0.8, "seeds": 3}}
        entry["few"] = {"points": [{"per_label": 2, "rows": 4, "score": None, "error": "too few"}, good], "scored": 99}
    page = html(result)
    assert "Score by number of labelled rows" in page and "too few" in page and "16 (8 per label)" in page


def test_a_run_on_the_file_of_the_test_set_is_told(rows: Path, tmp_path: Path, capfd: Any) -> None:
    small: Any = {"model": {"name": "lstm", "width": 8}, "train": {"steps": 2}, "quiet": True}
    fit(task="classification", data=str(rows), out=tmp_path / "before", **small)
    models = ["gru", f"again=run:{tmp_path / 'before'}"]
    how: Any = SMALL | {"quiet": False, "seeds": 1, "budget": "seconds=1"}
    compare(task="classification", data=str(rows), models=models, params="3k", out=tmp_path / "out", **how)
    said = capfd.readouterr()
    assert "was trained on the file that this test set is taken from" in said.err + said.out


def test_a_finished_comparison_is_not_ranked_by_another_score(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ranks by loss; with these models it would be bits_per_byte"):
        check_score("bits_per_byte", "loss", tmp_path)
    check_score("loss", "loss", tmp_path)
    check_score("loss", None, tmp_path)


def test_unknown_characters_are_refused_before_training_where_bits_per_byte_decide() -> None:
    tokenizer = train_tokenizer("characters", ["abc"])
    task: Any = Config().build(tokenizer)
    known, other = (TokenStream.of(tokenizer.encode(text), len(text), tokenizer.size) for text in ("abca", "abzz"))
    task.check_across({"train": other, "test": known})
    with pytest.raises(UserError, match=r"2 tokens of the test set are unknown.*tokenizer.kind=bpe"):
        task.check_across({"train": known, "test": other})
    words: Any = Config().build(train_tokenizer("words", ["a b c"]))
    with pytest.raises(UserError, match="depend on the tokenizer"):
        words.check_across({})


def test_draws_that_agree_by_chance_do_not_hide_the_luck_of_the_test_rows() -> None:
    right = np.random.default_rng(0).permutation([1.0, 0.0] * 20).tolist()
    tests = [{"accuracy": 0.5, "macro_f1": 0.4, "pieces": right}, {"accuracy": 0.5, "macro_f1": 0.4, "pieces": right}]
    found = score_interval(of_tests(tests, "accuracy", True), bounds=(0.0, 1.0))
    assert found.mean == 0.5 and found.low is not None and found.high is not None
    assert found.low < 0.4 and found.high > 0.6
    other = of_tests(tests, "macro_f1", False)
    assert other.scores.tolist() == [[0.4], [0.4]], "pieces are those of another score"
