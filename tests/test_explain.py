"""Alignments: where a model looked in its source, as numbers one can check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support import small_fit, small_translation, text
from test_cli import call

from seqloom.core.errors import UserError
from seqloom.decode.alignment import Map, read_maps
from seqloom.explain.alignments import Gold, explain_alignment, forward_share, read_gold, word_links, word_of
from seqloom.runs.run import Run
from seqloom.tokenizers import train_tokenizer

SOURCE = "the <b> sees a dog"
TARGET = "le &b voit un chien"
ATTENTIVE = {
    "transformer": ("transformer", "model.depth=2", "model.heads=2"),
    "luong": ("seq2seq",),
    "bahdanau": ("seq2seq", "model.query=before", "model.score=additive"),
    "hops": ("seq2seq", "model.hops=2", "model.heads=2", "model.score=scaled_dot"),
    "hops step by step": ("seq2seq", "model.hops=2", "model.feeding=true"),
    "backwards": ("seq2seq", "task.reverse=true"),
}
NAMES = {
    "transformer": ["mean"]
    + [f"decoder layer {layer}, {part}" for layer in (1, 2) for part in ("mean", "head 1", "head 2")],
    "luong": ["mean"],
    "bahdanau": ["mean"],
    "hops": ["mean"]
    + [f"attention, hop {hop}, {part}" for hop in (1, 2) for part in ("mean", "head 1", "head 2")],
    "hops step by step": ["mean", "attention, hop 1", "attention, hop 2"],
    "backwards": ["mean"],
}  # fmt: skip


pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    made: dict[str, Run] = {}

    def find(name: str) -> Run:
        if name not in made:
            model, *extra = ATTENTIVE[name]
            made[name] = small_translation(tmp_path_factory.mktemp("run"), model, *extra)
        return made[name]

    return find


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


@pytest.mark.parametrize("name", ATTENTIVE)
def test_every_layer_head_and_hop_has_its_map_and_rows_sum_to_one(trained, name):
    found = explain_alignment(trained(name), SOURCE, TARGET)
    assert [part["name"] for part in found["maps"]] == NAMES[name]
    assert found["source_tokens"] == [*SOURCE.split(), "<eos>"] and found["target_tokens"] == [*TARGET.split(), "<eos>"]
    for part in found["maps"]:
        weights = torch.tensor(part["weights"])
        assert weights.shape == (6, 6) and bool((weights >= 0).all())
        assert torch.allclose(weights.sum(1), torch.ones(6), atol=1e-3)


@pytest.mark.parametrize("name", ["luong", "bahdanau", "transformer"])
def test_a_row_is_where_the_model_looked_when_it_wrote_that_token(trained, name):
    """Changing a later output token changes nothing in the rows before it is read."""
    one = torch.tensor(explain_alignment(trained(name), SOURCE, "le &b voit un chien")["maps"][0]["weights"])
    other = torch.tensor(explain_alignment(trained(name), SOURCE, "le &b chat un chien")["maps"][0]["weights"])
    assert torch.equal(one[:3], other[:3]) and not torch.equal(one[3:], other[3:])


def test_columns_stand_in_the_order_of_the_text_also_when_it_is_read_backwards(trained):
    run = trained("backwards")
    found = explain_alignment(run, SOURCE, TARGET)
    ids = run.task.writer.source(next(run.task.writer.encode([SOURCE])))
    target = run.tokenizer.target
    (raw,) = read_maps(run.model, torch.as_tensor(ids), torch.tensor([target.bos, *target.encode(TARGET)]))
    expected = torch.cat((raw.weights[0][:, :5].flip(1), raw.weights[0][:, 5:]), dim=1)
    assert torch.allclose(torch.tensor(found["maps"][0]["weights"]), expected, atol=1e-4)


def test_a_causal_model_shows_what_falls_on_the_source(tmp_path):
    run = small_translation(tmp_path, "gpt", "model.depth=1", "model.heads=2", "model.context=32")
    found = explain_alignment(run, SOURCE, TARGET)
    assert [part["name"] for part in found["maps"]] == ["mean", "layer 1, head 1", "layer 1, head 2"]
    sums = torch.tensor(found["maps"][0]["weights"]).sum(1)
    assert bool((sums < 1).all()) and found["on_source"] == pytest.approx(float(sums.mean()), abs=1e-3)
    with pytest.raises(UserError, match="a target of 40 tokens is too long for the model's context 32"):
        explain_alignment(run, SOURCE, " ".join(["un"] * 40))


def test_explaining_changes_no_output(trained):
    run = trained("transformer")
    (before,) = run.predict(texts=[SOURCE])
    found = explain_alignment(run, SOURCE)
    (after,) = run.predict(texts=[SOURCE])
    assert before == after and found["target"] == before["prediction"] and found["score"] == before["score"]


def test_models_and_tasks_without_an_alignment_say_so_and_show_the_rest(run, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    small_translation(tmp_path / "a", "lstm")
    small_translation(tmp_path / "b", "seq2seq", "model.context=first")
    for folder in "ab":
        code, out, _ = run("explain", tmp_path / folder / "run", "--text", "the cat")
        assert code == 0 and "no alignment: this model has no alignment" in out
        code, _, err = run("explain", tmp_path / folder / "run", "--text", "the cat", "--views", "alignment")
        assert code == 2 and "this model has no alignment" in err and len(err.splitlines()) == 1
    (tmp_path / "book.txt").write_text(text(2000))
    small_fit(tmp_path / "book.txt", tmp_path / "book", "gru", ["train.steps=2"])
    code, _, err = run("explain", tmp_path / "book", "--text", "the cat", "--views", "alignment")
    assert code == 2 and "a language_model run has no source" in err and len(err.splitlines()) == 1


def test_the_command_writes_the_page_and_the_data(run, trained, tmp_path):
    folder = trained("transformer").folder.path
    words = ["--text", SOURCE, "--target", TARGET, "--out", tmp_path / "x.html", "--data-out", tmp_path / "x.json"]
    code, out, _ = run("explain", folder, *words)
    assert code == 0 and f"output: {TARGET}" in out and "of the steps do not move back" in out
    assert "<!doctype html>" in (tmp_path / "x.html").read_text()
    code, out, _ = run("explain", folder, *words, "--json")
    found = json.loads(out)
    assert found == json.loads((tmp_path / "x.json").read_text())
    found = found["views"]["alignment"]["facts"]
    assert found["given"] and found["score"] is None and found["maps"][0]["name"] == "mean"


def test_steps_that_do_not_go_back_are_counted():
    def share(*places: int) -> float | None:
        return forward_share(torch.nn.functional.one_hot(torch.tensor(places), 5).float())

    assert share(0, 1, 1, 4) == 1.0
    assert share(0, 2, 1, 3, 0) == 0.5
    assert share(3) is None


def test_tokens_are_gathered_into_the_words_between_white_space():
    words = train_tokenizer("words", ["it's a dog"])
    assert word_of(words, "it's a cat") == [0, 0, 0, 1, 2]
    characters = train_tokenizer("characters", ["ab c"])
    assert word_of(characters, "ab  c") == [0, 0, None, None, 1]
    subwords = train_tokenizer("bpe", ["low low lower"], size=262)  # two merges: lo, low
    names = [subwords.name(int(id)) for id in subwords.encode("lower 字")]
    assert names == ["low", "e", "r", " ", "\\xe5", "\\xad", "\\x97"]
    assert word_of(subwords, "lower 字") == [0, 0, 0, None, 1, 1, 1]


def test_links_are_the_most_of_what_the_tokens_of_a_word_look_at():
    weights = torch.tensor([[0.3, 0.3, 0.4], [0.0, 0.1, 0.9], [0.6, 0.3, 0.1]])
    assert word_links(weights, [0, 0, 1], [0, 1, 2]) == {(0, 0), (1, 1), (0, 2)}
    assert word_links(weights, [0, 0, 1], [0, 0, None]) == {(1, 0)}  # 0.35 against 0.65
    assert word_links(weights, [0, None, 1], [0, 0, 1]) == {(1, 0), (0, 1)}


def test_the_error_rate_is_that_of_a_hand_computed_example(trained, monkeypatch):
    run = trained("luong")
    weights = torch.tensor([[[0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]])
    found = replace(run.task.align(run.model, "the cat", "le chat"), maps=[Map("attention", weights)])
    monkeypatch.setattr(run.task, "align", lambda *_: found)
    # found: 0-0 0-1; of the sure ones 0-0 1-1 it has one: 1 - (1 + 1) / (2 + 2)
    (entry,) = explain_alignment(run, "the cat", "le chat", Gold({(0, 0), (1, 1)}, set()))["maps"]
    assert entry["error_rate"] == 0.5
    # with 0-1 possible: 1 - (1 + 2) / (2 + 2)
    (entry,) = explain_alignment(run, "the cat", "le chat", Gold({(0, 0), (1, 1)}, {(0, 1)}))["maps"]
    assert entry["error_rate"] == 0.25


def test_the_command_reports_the_error_rate_of_every_map(run, trained, tmp_path):
    (tmp_path / "gold.txt").write_text("0-0 1-1 2-2 3?3 4p4\n")
    words = ["--text", SOURCE, "--target", TARGET, "--gold", tmp_path / "gold.txt"]
    code, out, _ = run("explain", trained("transformer").folder.path, *words)
    assert code == 0 and out.count("alignment error rate") == 7
    code, out, _ = run("explain", trained("transformer").folder.path, *words, "--json", "--out", tmp_path / "x.html")
    maps = json.loads(out)["views"]["alignment"]["facts"]["maps"]
    assert all(0 <= part["error_rate"] <= 1 for part in maps)
    assert "alignment error rate" in (tmp_path / "x.html").read_text()
    assert read_gold(tmp_path / "gold.txt") == Gold({(0, 0), (1, 1), (2, 2)}, {(3, 3), (4, 4)})


BAD = {
    "no text": (["--text", " "], "--text: empty"),
    "gold without target": (["--text", "a", "--gold", "good.txt"], "give --target with --gold"),
    "no gold": (["--text", "a", "--target", "un", "--gold", "none.txt"], "none.txt: no such file"),
    "two lines": (["--text", "a", "--target", "un", "--gold", "two.txt"], "two.txt: 2 lines with links"),
    "no link": (["--text", "a", "--target", "un", "--gold", "bad.txt"], "'0:0' is not a link"),
    "a link to nowhere": (["--text", "a", "--target", "un", "--gold", "far.txt"], "link 0-3: the target has 1 words"),
    "a folder": (["--text", "a", "--out", "."], ".: is a folder; give a file name"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_one_clear_line(run, trained, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for file, content in {"good": "0-0", "two": "0-0\n1-1", "bad": "0:0", "far": "0-3"}.items():
        Path(f"{file}.txt").write_text(content)
    words, message = BAD[name]
    code, out, err = run("explain", trained("luong").folder.path, *words)
    assert code == 2 and message in err and not out and len(err.splitlines()) == 1
