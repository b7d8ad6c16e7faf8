"""Predictions: one for each source, in order, in bounded memory; a whole file or none; one line for every mistake."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import pairs_file, small_fit, small_translation, text
from test_cli import call

from seqloom.core.errors import UserError
from seqloom.runs.run import load
from seqloom.tasks.translation import sources, writer

SMALL_GPT = ["model.depth=1", "model.heads=2", "model.context=32"]


pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    run = small_translation(tmp_path_factory.mktemp("t"), "transformer", "model.depth=1", "model.heads=2")
    return run.folder.path


@pytest.fixture(scope="module")
def loaded(trained):
    return load(trained)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    return small_translation(tmp_path_factory.mktemp("g"), "gpt", *SMALL_GPT)


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_row_is_answered_in_order_with_its_line_and_its_target(run, trained, tmp_path):
    data = pairs_file(tmp_path / "new.tsv", 30, seed=1)
    code, out, _ = run("predict", trained, "--data", data)
    rows = [row.split("\t") for row in data.read_text().splitlines()[1:]]
    found = lines(out)
    assert code == 0 and [(row["source"], row["target"]) for row in found] == [tuple(row) for row in rows]
    assert [row["line"] for row in found] == list(range(2, 32))
    assert all(isinstance(row["prediction"], str) and row["score"] < 0 for row in found)


def test_the_size_of_the_chunks_changes_no_prediction(loaded, tmp_path, monkeypatch):
    data = str(pairs_file(tmp_path / "new.tsv", 25, seed=2))
    whole = list(loaded.predict(data))
    monkeypatch.setattr(writer, "_CHUNK", 4)
    for one, other in zip(whole, loaded.predict(data), strict=True):
        assert one["prediction"] == other["prediction"] and one["score"] == pytest.approx(other["score"], abs=1e-5)


def test_rows_are_read_as_predictions_are_taken(loaded, monkeypatch):
    monkeypatch.setattr(writer, "_CHUNK", 3)
    taken = []
    texts = (taken.append(n) or "the cat" for n in range(1000))
    answers = loaded.predict(texts=texts)
    assert not taken
    next(answers)
    assert len(taken) == 3


def test_a_text_is_predicted_from_like_a_row(run, trained, loaded):
    code, out, _ = run("predict", trained, "--text", "the cat sees")
    assert code == 0 and lines(out) == list(loaded.predict(texts=["the cat sees"]))
    assert set(lines(out)[0]) == {"line", "source", "prediction", "score"}


def test_sources_need_no_target_and_stand_in_any_format(run, trained, tmp_path):
    (tmp_path / "a.txt").write_text("the cat\n\na dog\n")
    (tmp_path / "b.jsonl").write_text('{"en": "the cat"}\n{"en": "a dog", "target": "un chien"}\n')
    (tmp_path / "c.csv").write_text("x,the cat\ny,a dog\n")
    found = lines(run("predict", trained, "--data", tmp_path / "a.txt")[1])
    assert [(row["line"], row["source"]) for row in found] == [(1, "the cat"), (3, "a dog")]
    found = lines(run("predict", trained, "--data", tmp_path / "b.jsonl", "--columns", "source=en")[1])
    assert "target" not in found[0] and found[1]["target"] == "un chien"
    found = lines(run("predict", trained, "--data", tmp_path / "c.csv", "--columns", "source=2")[1])
    assert [row["2"] for row in found] == ["the cat", "a dog"]


def test_the_best_few_come_sorted_and_the_first_is_the_prediction(run, trained):
    (row,) = lines(run("predict", trained, "--text", "the cat", "--n-best", "3", "--beams", "4")[1])
    scores = [found["score"] for found in row["n_best"]]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    assert row["n_best"][0] == {"text": row["prediction"], "score": row["score"]}


def test_lengths_and_repeats_are_as_asked(run, trained):
    def written(*options: str) -> list[str]:
        (row,) = lines(run("predict", trained, "--text", "the cat sees a dog", "--alignments", *options)[1])
        return row["alignment"]["target_tokens"][:-1]  # specials too, which a text does not show

    assert len(written("--min-new", "6", "--max-new", "6")) == 6
    assert len(written("--max-new", "1")) <= 1
    words = written("--min-new", "7", "--max-new", "7", "--no-repeat", "1")
    assert len(set(words)) == 7
    scores = [
        lines(run("predict", trained, "--text", "a", "--length-penalty", p, "--beams", "1", "--min-new", "3")[1])
        for p in ("0", "1")
    ]
    assert scores[0][0]["score"] < scores[1][0]["score"]


def test_drawing_depends_on_the_seed_alone(run, trained, tmp_path):
    data = pairs_file(tmp_path / "new.tsv", 10, seed=3)
    how = ["--data", data, "--temperature", "1.5", "--top-k", "9", "--top-p", "0.99"]
    one, again, other = (run("predict", trained, *how, "--seed", seed)[1] for seed in "112")
    assert one == again != other


def test_an_alignment_comes_with_the_prediction(run, trained, loaded):
    (row,) = lines(run("predict", trained, "--text", "the <b> sees", "--alignments")[1])
    found = row["alignment"]
    assert found["source_tokens"] == ["the", "<b>", "sees", "<eos>"]
    visible = [token for token in found["target_tokens"] if token not in ("<pad>", "<bos>", "<eos>")]
    assert visible == row["prediction"].split() and found["target_tokens"][-1] == "<eos>"
    assert len(found["weights"]) == len(found["target_tokens"])
    assert all(sum(weights) == pytest.approx(1, abs=1e-3) for weights in found["weights"])
    (plain,) = loaded.predict(texts=["the <b> sees"])
    assert (plain["prediction"], plain["score"]) == (row["prediction"], row["score"])


def test_a_file_is_written_whole_and_replaces_the_one_before(run, trained, tmp_path):
    data, out = pairs_file(tmp_path / "new.tsv", 5), tmp_path / "deep" / "out.jsonl"
    code, said, _ = run("predict", trained, "--data", data, "--out", out)
    assert code == 0 and "5 predictions" in said and len(lines(out.read_text())) == 5
    code, said, _ = run("predict", trained, "--text", "a cat", "--out", out, "--json")
    assert json.loads(said) == {"out": str(out), "predictions": 1, "cut": 0}
    assert len(lines(out.read_text())) == 1
    assert [path.name for path in out.parent.iterdir()] == ["out.jsonl"]


def test_an_interrupted_prediction_leaves_what_was_there(run, trained, tmp_path, monkeypatch):
    (tmp_path / "bad.jsonl").write_text('{"source": "the cat"}\n' * 4 + "not JSON\n")
    out = tmp_path / "out.jsonl"
    out.write_text("old\n")
    monkeypatch.setattr(writer, "_CHUNK", 2)
    code, _, err = run("predict", trained, "--data", tmp_path / "bad.jsonl", "--out", out)
    assert code == 2 and "bad.jsonl:5: not valid JSON" in err
    assert out.read_text() == "old\n" and {path.name for path in tmp_path.iterdir()} == {"bad.jsonl", "out.jsonl"}

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "find", stop)
    assert run("predict", trained, "--text", "a", "--out", out)[0] == 130
    assert out.read_text() == "old\n" and {path.name for path in tmp_path.iterdir()} == {"bad.jsonl", "out.jsonl"}


def test_a_source_too_long_for_the_model_is_cut_at_its_end_and_marked(gpt):
    long, short = " ".join(["cat"] * 60), "the cat"
    one, other = gpt.predict(texts=[long, short])
    assert one["cut"] is True and "cut" not in other and one["source"] == long
    kept = 32 - 8 - 1  # of the context: without the output's eight and the mark of the end
    (same,) = gpt.predict(texts=[" ".join(["cat"] * kept)])
    assert same["prediction"] == one["prediction"] and "cut" not in same
    (same,) = gpt.predict(texts=[" ".join(["cat"] * (kept + 1))])
    assert same["cut"] is True


def test_a_model_without_a_limit_reads_a_long_source_only_so_far(trained, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST", 40)
    one, other = load(trained).predict(texts=[" ".join(["cat"] * 60), " ".join(["cat"] * 39)])
    assert one["cut"] is True and "cut" not in other and one["prediction"] == other["prediction"]


def test_no_output_is_longer_than_the_context_has_room_for(gpt):
    (row,) = gpt.predict(texts=[" ".join(["cat"] * 60)], min_new=100, max_new=100, beams=1)
    assert len(row["prediction"].split()) <= 16 and row["cut"]


BAD = {
    "neither data nor text": ([], "give --data PATH or --text TEXT"),
    "both": (["--data", "x", "--text", "y"], "give --data PATH or --text TEXT"),
    "no text": (["--text", " "], "--text: empty"),
    "no file": (["--data", "missing.tsv"], "missing.tsv: no such file"),
    "an empty file": (["--data", "empty.tsv"], "empty.tsv: contains no text"),
    "no such column": (["--data", "pairs.tsv", "--columns", "source=sourc"], "did you mean 'source'?"),
    "too many of the best": (["--text", "a", "--beams", "2", "--n-best", "3"], "n_best=3: the search keeps 2"),
    "the best of what is drawn": (["--text", "a", "--temperature", "1", "--n-best", "2"], "the search keeps 1"),
    "drawn and searched": (["--text", "a", "--temperature", "1", "--beams", "2"], "searches for the most likely"),
    "top-k without drawing": (["--text", "a", "--top-k", "3"], "set temperature above 0"),
    "no beams": (["--text", "a", "--beams", "0"], "beams=0: must be from 1"),
    "less than nothing": (["--text", "a", "--max-new", "-1"], "Invalid value for '--max-new'"),
    "a folder to write to": (["--text", "a", "--out", "."], ".: is a folder; give a file name"),
    "the data to write to": (["--data", "pairs.tsv", "--out", "pairs.tsv"], "is also --data"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_one_clear_line(run, trained, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    pairs_file(tmp_path / "pairs.tsv", 3)
    (tmp_path / "empty.tsv").write_text("")
    words, message = BAD[name]
    code, out, err = run("predict", trained, *words)
    assert code == 2 and message in err and not out and len(err.splitlines()) == 1


def test_a_model_without_attention_has_no_alignment(tmp_path):
    lstm = small_translation(tmp_path, "lstm")
    assert len(list(lstm.predict(texts=["the cat"]))) == 1
    with pytest.raises(UserError, match="this model has no alignment"):
        lstm.predict(texts=["the cat"], alignments=True)


def test_each_kind_of_run_says_which_command_uses_it(run, trained, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text(text(2000))
    small_fit(book, tmp_path / "book", "gru", ["train.steps=2"])
    code, _, err = run("predict", tmp_path / "book", "--data", book)
    assert code == 2 and err == "seqloom: a language_model run does not predict; use seqloom generate\n"
    for options in ([], ["--json"], ["--beams", "2"]):
        code, _, err = run("generate", trained, "--prompt", "the cat", *options)
        assert code == 2 and err == "seqloom: a translation run does not generate; use seqloom predict\n"


def test_long_work_tells_how_far_it_is(run, trained, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["seqloom.cli.predict"], "_PATIENCE", 0.0)
    code, out, err = run("predict", trained, "--data", pairs_file(tmp_path / "new.tsv", 3))
    assert code == 0 and "3 predictions, " in err and len(lines(out)) == 3
