"""`seqloom explain`, `seqloom.explain` and `run.explain`: any task, two runs, a file's worst errors, clear refusals."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import small_fit, text
from test_cli import call

import seqloom
from seqloom.core.errors import UserError
from seqloom.core.taps import find_taps, record
from seqloom.explain.explaining import find_row
from seqloom.explain.explanation import find_instance
from seqloom.explain.stretches import spans_of
from seqloom.explain.worst import calibration, worst
from seqloom.runs.run import Run, load

GOLDEN = Path(__file__).parent / "golden" / "runs"
INPUTS: dict[str, dict[str, Any]] = {  # one run of each task, and what to explain it on
    "language_model": {"text": "the cat"},
    "classification": {"text": "good day"},
    "tagging": {"text": "Ada sees Rome"},
    "translation": {"text": "the cat"},
    "masked_lm": {"text": "the <mask> cat"},
    "question_answering": {"text": "Where is the cat?", "passage": "The cat is in the house. It sleeps."},
    "forecasting": {"data": str(GOLDEN.parent / "data" / "series.csv")},
    "measurements": {"data": "sample:waves", "row": 2},
    "counting": {"text": "the cat"},
}


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, own_cache) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "book.txt").write_text(text(2500))
    made = {name: small_fit(folder / "book.txt", folder / name, name, ["train.steps=3"]) for name in ("gru", "gpt")}
    words = ["train.steps=3", "tokenizer.kind=words"]
    return made | {"words": small_fit(folder / "book.txt", folder / "words", "lstm", words)}


def words_of(given: dict[str, Any]) -> list[str]:
    return [part for name, value in given.items() for part in (f"--{name}", str(value))]


@pytest.mark.parametrize("name", INPUTS)
def test_every_task_is_explained_from_the_command_line(run, tmp_path, name):
    page = tmp_path / "page.html"
    code, out, err = run("explain", GOLDEN / name, *words_of(INPUTS[name]), "--out", page)
    assert code == 0, err
    assert (f"written: {page}" in out and "←" in out) or name == "counting"
    assert "<!doctype html>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", INPUTS)
def test_explaining_changes_no_prediction(name):
    loaded = load(GOLDEN / name)
    given = dict(INPUTS[name])
    instance = find_instance(loaded, find_row(loaded, **{"text": None, **given}))
    with torch.no_grad():
        before = instance.read(loaded.model, 1)
        loaded.explain(**given)
        with record(loaded.model) if find_taps(loaded.model) else nullcontext():  # what counts has none
            watched = instance.read(loaded.model, 1)
        after = instance.read(loaded.model, 1)
    assert torch.equal(watched, before) and torch.equal(after, before), "not even by rounding"


def test_the_data_can_be_saved_in_every_form(runs, tmp_path):
    found = runs["gru"].explain("the cat sat")
    for suffix in (".html", ".svg", ".json", ".npz"):
        assert found.save(tmp_path / f"x{suffix}").stat().st_size > 500
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays["influence.occlusion"].shape == (len(found.outputs), len(found.inputs))
    data = json.loads((tmp_path / "x.json").read_text())
    assert data["views"]["predictions"]["tensors"]["loss"] == found.tensors["predictions.loss"].tolist()


def test_views_are_tables_with_a_row_per_cell(runs):
    found = runs["gru"].explain("the cat")
    frame = found.frame("influence")
    assert len(frame) == len(found.outputs) * len(found.inputs)
    assert frame["occlusion"].to_numpy() == pytest.approx(found.tensors["influence.occlusion"].ravel())
    assert "gru" in repr(found) and "predictions" in repr(found)


def test_only_the_views_that_are_named_are_computed(run, runs):
    code, out, _ = run("explain", runs["gpt"].folder.path, "--text", "the cat", "--views", "predictions,lens", "--json")
    assert code == 0 and set(json.loads(out)["views"]) == {"predictions", "lens"}


def test_the_terminal_shows_each_output_with_its_strongest_influences(run, runs):
    code, out, _ = run("explain", runs["gru"].folder.path, "--text", "the cat")
    lines = [line for line in out.splitlines() if "rank" in line]
    assert code == 0 and len(lines) == 7 and all("←" in line for line in lines)
    assert "mean loss" in out and "no attention: this model has no attention weights" in out


def test_two_runs_with_the_same_tokens_are_compared_output_by_output(run, runs, tmp_path):
    places = [runs[name].folder.path for name in ("gru", "gpt")]
    code, out, _ = run("explain", *places, "--text", "the cat sat", "--out", tmp_path / "two.html")
    assert code == 0 and "gpt minus gru: mean loss" in out
    found = seqloom.explain([runs["gru"], runs["gpt"]], "the cat sat")
    first, second = (side.views["predictions"].tensors["loss"] for side in found.sides)
    own = found.difference.tensors["loss"]
    assert own == pytest.approx((second - first)[: len(own)])


def test_two_runs_with_different_tokens_are_compared_by_stretches_of_text(run, runs):
    found = seqloom.explain([runs["gru"], runs["words"]], "the cat sat on a mat")
    facts = found.difference.facts
    assert facts["aligned"] == "stretch" and "".join(facts["outputs"]).split() == ["cat", "sat", "on", "a", "mat"]
    losses = [side.views["predictions"].tensors["loss"] for side in found.sides]
    outputs = [side.outputs for side in found.sides]
    totals = [loss[[o.given for o in own]].sum() for loss, own in zip(losses, outputs, strict=True)]
    skipped = losses[0][:3].sum()  # the rest of the first word and the space: the other does not predict them
    assert found.difference.tensors["loss"].sum() == pytest.approx(totals[1] - (totals[0] - skipped), abs=1e-4)


def test_tokens_are_found_in_the_text_by_their_names():
    assert spans_of("the cat", ["<bos>", "the", " cat"]) == [(0, 0), (0, 3), (3, 7)]
    assert spans_of("a字b", ["a", "\\xe5", "\\xad", "\\x97", "b"]) == [(0, 1), (1, 1), (1, 1), (1, 2), (2, 3)]
    assert spans_of("a b", ["a", "b"]) == [(0, 2), (2, 3)]


def test_patching_says_where_the_other_text_changes_the_output(run, runs):
    code, out, _ = run("explain", runs["gpt"].folder.path, "--text", "the cat sat", "--with", "the mat ran")
    assert code == 0 and "patching: output" in out


def test_gradients_of_several_runs_and_a_walk_are_views_of_their_own(run, runs, tmp_path):
    places = [runs[name].folder.path for name in ("gru", "gpt", "words")]
    code, out, _ = run("explain", *places, "--text", "the cat sat", "--gradients", "--out", tmp_path / "g.html")
    assert code == 0 and out.count("gradient at embedding") == 3 and "rank" not in out
    code, out, _ = run("explain", places[1], "--text", "the cat", "--walk", "--layer", 2, "--head", 1)
    assert code == 0 and "layer 2, head 1, query t" in out


def test_the_worst_rows_of_a_file_come_first(run, tmp_path):
    rows = [f"{word} day,{n % 2}" for n, word in enumerate(["good", "bad", "fine", "poor"] * 5)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    words = ["-o", "train.steps=3", "-o", "model.width=16", "-o", "train.threads=1", "-o", "tokenizer.min_count=1"]
    assert run("fit", "--task", "classification", "--data", tmp_path / "rows.csv", "--model", "gru",
               "--out", tmp_path / "run", *words)[0] == 0  # fmt: skip
    page = tmp_path / "worst.html"
    code, out, _ = run("explain", tmp_path / "run", "--data", tmp_path / "rows.csv", "--worst", 3, "--out", page)
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in out.splitlines() if line.startswith("  line")]
    assert code == 0 and len(losses) == 3 and losses == sorted(losses, reverse=True)
    assert "calibration: expected error" in out and '"worst"' in page.read_text()


def test_the_calibration_error_is_that_of_a_hand_computed_example():
    confidence = np.array([0.95, 0.95, 0.65, 0.65])
    view = calibration(confidence, np.array([True, False, True, True]))
    assert view.facts["error"] == pytest.approx((2 * 0.45 + 2 * 0.35) / 4)
    assert [row["count"] for row in view.rows] == [2, 2]
    assert calibration(np.array([1.0]), np.array([True])).facts["error"] == 0


BAD: dict[str, tuple[str, list[Any], str]] = {
    "nothing": ("gru", [], "give --text TEXT, or --data FILE"),
    "two inputs": ("gru", ["--text", "a", "--data", "b.txt"], "exactly one of them"),
    "empty": ("gru", ["--text", " "], "--text: empty"),
    "a row of a text": ("gru", ["--text", "a", "--row", 2], "--row: counts the rows of --data"),
    "row and worst": ("gru", ["--data", "b.txt", "--row", 1, "--worst", 2], "--row explains one row"),
    "no such row": ("gru", ["--data", "b.txt", "--row", 99], "--row 99: b.txt has no such row"),
    "too long": ("gpt", ["--text", "the cat " * 9], "more than the 16 that the model reads"),
    "unknown view": ("gru", ["--text", "a", "--views", "lense"], "did you mean 'lens'?"),
    "a view it has not": ("gru", ["--text", "the", "--views", "attention"], "look at its memory"),
    "a layer it has not": ("gpt", ["--text", "the", "--walk", "--layer", 9], "--layer 9: there are 2, counted from 1"),
    "a head it has not": ("gpt", ["--text", "the", "--walk", "--head", 3], "--head 3: there are 2, counted from 1"),
    "unknown token": ("gru", ["--text", "the", "--against", "字"], "'字': the model's vocabulary has no such token"),
    "unknown target": ("gru", ["--text", "the", "--target", "字"], "'字': the model's vocabulary has no such token"),
    "format": ("gru", ["--text", "the", "--out", "x.png"], "x.png: unknown format; let the name end in .html"),
    "worst of a text": ("gru", ["--text", "the", "--worst", 2], "--worst: counts the rows of --data"),
    "patching alone": ("gpt", ["--text", "the", "--views", "patching"], "give --with TEXT"),
    "worst with views": ("gru", ["--data", "b.txt", "--worst", 2, "--walk"], "--walk: explains one input"),
    "worst with gold": ("gru", ["--data", "b.txt", "--worst", 2, "--gold", "g"], "--gold: explains one input"),
    "no views": ("gru", ["--text", "the", "--views", ","], "--views: empty"),
    "a layer and no walk": ("gpt", ["--text", "the", "--layer", 1], "--layer: chooses what --walk shows"),
    "patching with nothing": ("gru", ["--text", "the", "--with", " "], "--with: empty"),
    "against itself": ("gru", ["--text", "the", "--target", "a", "--against", "a"], "the same as --target"),
    "several tokens": ("gru", ["--text", "the", "--against", "cat"], "3 tokens of this model ('c', 'a', 't')"),
    "a second text": ("gru", ["--text", "the", "--second", "a"], "--second: this language_model run reads one text"),
    "a passage of a row": ("gru", ["--data", "b.txt", "--passage", "a"], "a row of --data has its own"),
    "worst with target": ("gru", ["--data", "b.txt", "--worst", 2, "--target", "t"], "--target: explains one input"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_one_clear_line(run, runs, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("b.txt").write_text("the cat\nsat on\n")
    model, words, message = BAD[name]
    code, out, err = run("explain", runs[model].folder.path, *words)
    lines = [line for line in err.splitlines() if line.startswith("seqloom:")]
    assert code == 2 and message in lines[0] and not out and len(lines) == 1


def test_a_model_that_only_counts_shows_its_predictions_and_says_why_nothing_else(run):
    code, out, _ = run("explain", GOLDEN / "counting", "--text", "the cat")
    assert code == 0 and "no influence, attention, memory, lens: this model learns by counting" in out and "rank" in out
    code, _, err = run("explain", GOLDEN / "counting", "--text", "the cat", "--views", "influence")
    assert code == 2 and "what can be shown is predictions" in err


def test_numbers_cannot_be_given_as_text(run):
    code, _, err = run("explain", GOLDEN / "forecasting", "--text", "1 2 3")
    assert code == 2 and "reads numbers, not text; give --data FILE with --row N" in err


def test_tokens_that_the_model_does_not_know_are_counted(run, runs):
    code, out, _ = run("explain", runs["gru"].folder.path, "--text", "the 字 cat")
    assert code == 0 and "1 of 9 tokens are not in the vocabulary" in out


def test_links_of_a_run_without_alignment_are_refused(run, runs, tmp_path):
    (tmp_path / "gold.txt").write_text("0-0")
    given = ["--text", "the", "--target", "a", "--gold", tmp_path / "gold.txt"]
    code, _, err = run("explain", runs["gru"].folder.path, *given)
    assert code == 2 and "--gold: this language_model explanation has no alignment" in err


def test_a_walk_through_a_model_that_counts_says_what_can_be_shown(run):
    code, _, err = run("explain", GOLDEN / "counting", "--text", "the cat", "--walk")
    assert code == 2 and "what can be shown is predictions" in err and "memory" not in err


def test_a_text_too_short_for_stretches_has_no_difference(run, runs):
    sides = runs["gru"].folder.path, runs["words"].folder.path
    code, out, _ = run("explain", *sides, "--text", "the")
    assert code == 0 and "have no output in common to compare" in out


def test_two_long_texts_are_compared_without_occlusion(runs, monkeypatch):
    monkeypatch.setattr("seqloom.explain.views.influence.LONGEST", 3)
    found = seqloom.explain([runs["gru"], runs["gru"]], "the cat")
    assert "loss" in found.difference.tensors and "influence" not in found.difference.tensors


def test_two_runs_of_one_name_keep_their_numbers_apart(runs):
    found = seqloom.explain([runs["gru"], runs["gru"]], "the cat")
    assert {"gru 1 predictions", "gru 2 predictions", "difference"} <= found.views.keys()


def test_patching_a_row_of_a_file_takes_the_other_text(tmp_path):
    tagged = tmp_path / "tagged.jsonl"
    tagged.write_text(json.dumps({"words": ["Ada", "sees", "Rome"], "tags": ["O", "O", "O"]}))
    view = load(GOLDEN / "tagging").explain(data=tagged, patch_with="The cat sleeps").views["patching"]
    assert {row["input"] for row in view.rows} != {row["other"] for row in view.rows}


def test_numbers_cannot_be_patched_with_a_text():
    with pytest.raises(UserError, match="--with: this forecasting run reads numbers"):
        load(GOLDEN / "forecasting").explain(**INPUTS["forecasting"], patch_with="a text")


def test_a_text_that_is_cut_is_reported(run):
    code, out, _ = run("explain", GOLDEN / "classification", "--text", "good day " * 400, "--views", "predictions")
    assert code == 0 and "that the model reads: the rest was cut off" in out


def test_rows_that_are_left_out_are_counted_with_the_reason(tmp_path, monkeypatch):
    rows = tmp_path / "rows.csv"
    loaded = load(GOLDEN / "classification")
    labels = loaded.task.labels
    rows.write_text("text,label\nbad day,nosuch\n" + f"good day,{labels[0]}\n" * 3)
    assert "1 rows left out; the first: unknown label 'nosuch'" in worst(loaded, str(rows), 1).about["notes"][0]
    monkeypatch.setattr("seqloom.explain.worst.MOST", 2)
    assert worst(loaded, str(rows), 1).about["notes"][0] == "only the first 2 rows of the file were read"


def test_a_file_without_answers_says_why(tmp_path):
    (tmp_path / "book.txt").write_text("the cat\n")
    with pytest.raises(UserError, match=r"no row whose loss can be computed; the first: .* no gap"):
        worst(load(GOLDEN / "masked_lm"), str(tmp_path / "book.txt"), 1)


def test_damaged_checkpoints_are_left_out(runs, tmp_path):
    copied = shutil.copytree(runs["gru"].folder.path, tmp_path / "copied")
    for weights in copied.glob("checkpoints/*/model.safetensors"):
        weights.write_bytes(b"xx")
    facts = load(copied).explain("the cat", views=["gradients"]).views["gradients"].facts
    assert "damaged checkpoint" in facts["damaged"] and facts["radii"]


def test_a_document_too_long_to_explain_is_refused_at_once(run, runs, monkeypatch):
    with pytest.raises(UserError, match="400,000 characters: too long to explain"):
        runs["gru"].explain("the cat " * 50_000)
    monkeypatch.setattr("seqloom.explain.explanation.LONGEST", 20)
    code, out, err = run("explain", GOLDEN / "translation", "--text", "the cat " * 9)
    assert code == 2 and not out and "too long to explain, which takes at most 20 tokens" in err


@pytest.mark.parametrize("name", ["forecasting", "measurements"])
def test_what_has_no_source_has_no_alignment(run, name):
    code, _, err = run("explain", GOLDEN / name, "--data", INPUTS[name]["data"], "--views", "alignment")
    assert code == 2 and "has no source and output to align" in err


def test_no_file_has_so_many_rows():
    with pytest.raises(UserError, match="has no such row"):
        load(GOLDEN / "forecasting").explain(**INPUTS["forecasting"], row=10**25)
