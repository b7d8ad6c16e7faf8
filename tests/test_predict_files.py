"""What `predict` reads and writes: the rows of a table with their own columns, as JSON lines or as a flat table."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import pairs_file
from test_cli import call

import seqloom
from seqloom.core.errors import UserError
from seqloom.runs.outputs import write_predictions
from seqloom.runs.predicting import beside
from seqloom.runs.run import Run

pytestmark = pytest.mark.usefixtures("own_cache")

REVIEWS = 'id,review,label,score\n1,a fine film,good,7\n2,,bad,3\n3,"poor, so poor",bad,2\n'


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("reviews")
    lines = [
        f"{word} film number {n},{label}" for n in range(30) for word, label in (("fine", "good"), ("poor", "bad"))
    ]
    (folder / "a.csv").write_text("\n".join(["review,label", *lines]) + "\n")
    return seqloom.fit(task="classification", data=str(folder / "a.csv"), model="tfidf", out=folder / "run", quiet=True)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("pairs")
    data = str(pairs_file(folder / "pairs.tsv"))
    return seqloom.fit(task="translation", data=data, model="nearest", out=folder / "run", quiet=True)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    (tmp_path / "reviews.csv").write_text(REVIEWS)
    return tmp_path / "reviews.csv"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_columns_of_a_row_come_before_its_prediction(classifier: Run, reviews: Path) -> None:
    first, empty, _ = classifier.predict(str(reviews))
    names = ["line", "id", "review", "label_actual", "score", "label", "probability", "probabilities"]
    assert list(first) == names and first["id"] == "1" and first["review"] == "a fine film"
    assert first["label_actual"] == "good" and first["label"] in ("good", "bad")
    assert empty["label"] is None and empty["reason"] == "an empty text" and empty["score"] == "3"


def test_a_flat_table_has_a_column_for_each_probability_and_no_line_numbers(
    classifier: Run, reviews: Path, run: Any, tmp_path: Path
) -> None:
    for ending, mark in ((".csv", ","), (".tsv", "\t")):
        out = tmp_path / f"out{ending}"
        code, said, err = run("predict", classifier.folder.path, "--data", reviews, "--out", out)
        assert code == 0 and "3 predictions" in said, err
        first, empty, last = csv.DictReader(io.StringIO(out.read_text()), delimiter=mark)
        own, found = ["id", "review", "label_actual", "score"], ["label", "probability"]
        assert list(first) == [*own, *found, "probability_bad", "probability_good", "reason"]
        assert float(first["probability_bad"]) + float(first["probability_good"]) == pytest.approx(1, abs=1e-5)
        assert empty["label"] == "" and empty["reason"] == "an empty text" and last["review"] == "poor, so poor"


def test_a_parquet_file_has_types(classifier: Run, reviews: Path, run: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "out.parquet"
    code, _, err = run("predict", classifier.folder.path, "--data", reviews, "--out", out)
    assert code == 0, err
    table = parquet.read_table(out)
    assert [str(table.schema.field(name).type) for name in ("review", "probability_good")] == ["string", "double"]
    assert table.column("label").to_pylist()[1] is None and table.num_rows == 3


def test_parquet_without_its_writer_is_one_line_before_the_work(
    classifier: Run, reviews: Path, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"] + ["pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    code, _, err = run("predict", classifier.folder.path, "--data", reviews, "--out", tmp_path / "o.parquet")
    assert code == 2 and "parquet needs the pyarrow package: pip install 'seqloom[data]'" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["out.json", "out", "out.xlsx"])
def test_another_format_is_refused_before_the_work(run: Any, tmp_path: Path, name: str) -> None:
    code, _, err = run("predict", tmp_path / "no-run", "--text", "a", "--out", tmp_path / name)
    assert code == 2 and "let the name end in .jsonl, .csv, .tsv or .parquet" in err


def test_a_source_is_not_repeated_and_an_empty_one_stays(translator: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"n": 1, "source": "the cat", "score": 5}\n{"n": 2, "source": " "}\n{"n": 3, "source": "a dog"}\n'
    )
    first, empty, last = translator.predict(str(tmp_path / "a.jsonl"))
    assert list(first) == ["line", "n", "source", "score_actual", "prediction", "score"]
    assert empty == {"line": 2, "n": 2, "source": " ", "prediction": None, "score": None, "reason": "an empty text"}
    assert last["n"] == 3 and last["prediction"]


def test_columns_without_a_header_are_kept_under_their_numbers(translator: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,the cat\ny,a dog\n")
    first, _ = translator.predict(str(tmp_path / "a.csv"), columns={"source": 2})
    assert list(first) == ["line", "1", "2", "prediction", "score"] and first["1"] == "x"


def test_tags_and_answers_stand_beside_those_of_the_file(tmp_path: Path) -> None:
    rows = [{"id": n, "words": [f"w{n}", "in", "Rome"], "tags": ["O", "O", "B-LOC"]} for n in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tagger = seqloom.fit(
        task="tagging", data=str(tmp_path / "a.jsonl"), model="frequent", out=tmp_path / "t", quiet=True
    )
    first = next(tagger.predict(str(tmp_path / "a.jsonl")))
    assert list(first) == ["line", "id", "words", "tags_actual", "tags", "entities"] and first["tags"][2] == "B-LOC"
    asked = [{"id": n, "context": f"Box {n} is red.", "question": f"What is box {n}?"} for n in range(40)]
    rows = [row | {"answers": {"text": ["red"], "answer_start": [row["context"].index("red")]}} for row in asked]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = seqloom.fit(task="question_answering", data=str(tmp_path / "q.jsonl"), model="gru", out=tmp_path / "q",
                         overrides=["train.steps=1", "train.batch=4", "model.width=8"], quiet=True)  # fmt: skip
    first = next(reader.predict(str(tmp_path / "q.jsonl")))
    own = ["line", "id", "context", "question", "answers"]
    assert list(first) == [*own, "answer", "start", "end", "score", "n_best"] and first["id"] == 0


def test_standard_input_is_read_like_a_file(
    classifier: Run, run: Any, monkeypatch: pytest.MonkeyPatch, reviews: Path
) -> None:
    def piped(text: str, *words: str) -> list[dict[str, Any]]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code, out, err = run("predict", classifier.folder.path, "--data", "-", *words)
        assert code == 0, err
        return lines(out)

    assert piped(REVIEWS) == list(classifier.predict(str(reviews)))
    assert [row["text"] for row in piped("a fine film\na poor one, too\n")] == ["a fine film", "a poor one, too"]
    (row,) = piped('{"note": 1, "review": "fine"}\n')
    assert row["note"] == 1 and row["label"] in ("good", "bad")
    first, _ = piped("x,a fine film\ny,a poor film\n", "--columns", "text=2")
    assert first["1"] == "x" and first["2"] == "a fine film"


def test_rows_are_read_as_predictions_are_taken(tmp_path: Path) -> None:
    taken: list[int] = []

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for n in range(1000):
            taken.append(n)
            yield n, {"text": "a"}

    answers = ({"line": n, "text": "a", "label": "b"} for n in range(1000))
    joined = beside(rows(), answers, {"text": "text"})
    assert next(joined) == {"line": 0, "text": "a", "label": "b"} and taken == [0]


def test_a_field_that_comes_late_is_a_column_all_the_same(tmp_path: Path) -> None:
    rows = [{"line": n, "prediction": "x"} | ({"cut": True} if n == 2 else {}) for n in range(3)]
    assert write_predictions(iter(rows), tmp_path / "a.csv") == (3, 1)
    assert (tmp_path / "a.csv").read_text().splitlines() == ["line,prediction,cut", "0,x,", "1,x,", "2,x,True"]


def test_a_table_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"line": 1}
        raise UserError("broken")

    with pytest.raises(UserError):
        write_predictions(rows(), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


FORMULAS = ["=1+1", "+1+1", "-1-1", "@sum(a1)", "\t=1", "\r=1", "\n=1", "＝1+1", "-", "=", "+a", "-a", "-1_000"]
HARMLESS = ["", "a", "a=1", "-1", "+1.5", "-1e-5", "-1,000.5", "+5%", "-.5", " 1", "'=1", "[1]"]


@pytest.mark.parametrize("kind, mark", [(".csv", ","), (".tsv", "\t")])
def test_no_cell_is_a_formula(tmp_path: Path, kind: str, mark: str) -> None:
    rows = [{"line": n, "=name": text, "score": -0.5} for n, text in enumerate([*FORMULAS, *HARMLESS])]
    write_predictions(iter(rows), tmp_path / f"a{kind}")
    with (tmp_path / f"a{kind}").open(newline="") as file:
        head, *found = csv.reader(file, delimiter=mark)
    assert head == ["line", "'=name", "score"]
    assert [cells[1] for cells in found] == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert {cells[2] for cells in found} == {"-0.5"}


def test_lines_of_json_have_texts_as_they_are(tmp_path: Path) -> None:
    write_predictions(iter({"text": text} for text in FORMULAS), tmp_path / "a.jsonl")
    assert [json.loads(line)["text"] for line in (tmp_path / "a.jsonl").read_text().splitlines()] == FORMULAS
