"""Data in memory: every form that data comes in from Python trains, scores and predicts like a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import polars
import pytest

import seqloom
from seqloom.core.config import as_overrides, parse_overrides
from seqloom.core.errors import UserError
from seqloom.data.memory import Layout, guess, like, store
from seqloom.runs.run import Run

TEXTS = [f"{text} {n}" for n, text in enumerate(["a good film", "a bad film", "what a fine day", "an awful day"] * 10)]
LABELS = ["pos", "neg"] * 20
ROWS = [{"review": text, "stars": label, "id": n} for n, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
FRAME = pandas.DataFrame(ROWS)
WORDS = [["Ada", "lives", "in", f"Paris{n}"] for n in range(20)]
TAGS = [["B-PER", "O", "O", "B-LOC"]] * 20
WAVE = np.sin(np.arange(300) / 5)
TIMED = pandas.Series(WAVE, index=pandas.date_range("2020-01-01", periods=300, freq="D"), name="load")
SOUNDS = [np.random.default_rng(n).normal(size=(5 + n % 3, 3)) for n in range(40)]
TRAIN = {"steps": 2, "threads": 1}
FORECAST = {"task.horizon": 4, "task.context": 24}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


def fit(data: Any, model: str = "gru", **options: Any) -> Run:
    return seqloom.fit(data=data, model={"name": model, "width": 8}, train=TRAIN, quiet=True, **options)


def content(data: Any, layout: Layout) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(store(data, layout).spec).read_text(encoding="utf-8").splitlines()]


FRAMES = [FRAME, polars.DataFrame(ROWS), datasets.Dataset.from_list(ROWS), ROWS, FRAME.to_dict("list")]
LABELLED = Layout(("text", "label"))


@pytest.mark.parametrize("data", FRAMES, ids=["pandas", "polars", "datasets", "dicts", "columns"])
def test_a_table_is_stored_with_its_own_columns(data: Any) -> None:
    assert content(data, LABELLED) == ROWS


PAIRS = [(TEXTS, LABELS), (np.array(TEXTS), np.array(LABELS)), list(zip(TEXTS, LABELS, strict=True))]
PAIRS += [(pandas.Series(TEXTS), polars.Series(LABELS))]


@pytest.mark.parametrize("data", PAIRS, ids=["lists", "arrays", "pairs", "series"])
def test_inputs_and_targets_become_the_columns_of_the_task(data: Any) -> None:
    found = content(data, LABELLED)
    assert [row["text"] for row in found] == TEXTS
    assert [row["label"] for row in found] == LABELS


def test_words_with_their_tags_may_come_as_pairs_or_as_two_lists() -> None:
    layout = Layout(("words", "tags"), words="text")
    pairs = [list(zip(words, tags, strict=True)) for words, tags in zip(WORDS, TAGS, strict=True)]
    assert content(pairs, layout) == content((WORDS, TAGS), layout) == content({"words": WORDS, "tags": TAGS}, layout)
    assert content(["Ada lives"], layout) == [{"text": "Ada lives"}]


def test_the_same_data_is_stored_once_and_other_data_elsewhere() -> None:
    first, second = store((TEXTS, LABELS), LABELLED), store((list(TEXTS), tuple(LABELS)), LABELLED)
    assert first.spec == second.spec != store((TEXTS[::-1], LABELS), LABELLED).spec
    assert len(list(Path(first.spec).parent.iterdir())) == 2  # and no temporary file


def test_data_that_was_not_used_for_a_month_is_removed() -> None:
    old = Path(store(TEXTS, LABELLED).spec)
    os.utime(old, (0, 0))
    assert store(TEXTS[:3], LABELLED).spec and not old.exists()
    assert Path(store(TEXTS, LABELLED).spec) == old and old.exists()


def test_missing_values_times_and_numbers_of_numpy_become_json() -> None:
    frame = pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01", None]), "x": [1.5, np.nan], "n": [1, 2]})
    assert content(frame, Layout(series=True)) == [
        {"when": "2020-01-01 00:00:00", "x": 1.5, "n": 1},
        {"when": None, "x": None, "n": 2},
    ]


GUESSED = {
    "language_model": TEXTS,
    "classification": (TEXTS, LABELS),
    "translation": (TEXTS, [text.upper() for text in TEXTS]),
    "tagging": (WORDS, TAGS),
    "forecasting": WAVE,
}


@pytest.mark.parametrize(("task", "data"), GUESSED.items(), ids=list(GUESSED))
def test_the_form_of_the_data_shows_the_task(task: str, data: Any) -> None:
    assert guess(data) == task


@pytest.mark.parametrize("data", FRAMES[:4], ids=["pandas", "polars", "datasets", "dicts"])
def test_a_classifier_returns_predictions_in_the_form_of_the_data(data: Any) -> None:
    run = fit(data, "tfidf", task="classification")
    found = run.predict(data)
    assert type(found) is type(data)
    columns = list(found[0]) if isinstance(data, list) else list(getattr(found, "column_names", None) or found.columns)
    assert {"label", "probability"} <= set(columns)
    if not isinstance(data, list):
        assert columns[:3] == ["review", "stars", "id"]  # other columns stay, in their order
    assert run.evaluate(data)["accuracy"] == run.evaluate((TEXTS, LABELS))["accuracy"] > 0.9


def test_the_index_and_the_types_of_a_data_frame_stay() -> None:
    frame = FRAME.assign(day=pandas.Timestamp("2020-01-01")).set_index(pandas.Index(range(100, 140)))
    found = fit(frame, "tfidf", task="classification").predict(frame.drop(columns="stars"))
    assert list(found.index) == list(range(100, 140))
    assert found["day"].dtype == frame["day"].dtype


def test_a_predicted_column_moves_the_one_of_the_same_name() -> None:
    frame = pandas.DataFrame({"text": ["a", "b"], "label": ["x", "y"]})
    rows = [{"line": 1, "text": "a", "label_actual": "x", "label": "y"}] * 2
    assert list(like(frame, rows, beside=True).columns) == ["text", "label_actual", "label"]


def test_texts_train_a_language_model_and_its_history_is_at_hand() -> None:
    run = fit(TEXTS)
    assert run.config.task["name"] == "language_model"
    assert isinstance(run.generate("a good", max_new=3), str)
    assert [entry["step"] for entry in run.history if "valid" in entry][-1] == 2
    assert sum(p.numel() for p in run.model.parameters()) == run.summary["parameters"]


def test_pairs_train_a_translator() -> None:
    run = fit((TEXTS, [text.upper() for text in TEXTS]), "seq2seq", task="translation")
    (row,) = run.predict(["a good film"], max_new=3)
    assert row["source"] == "a good film"
    assert "prediction" in row


def test_words_and_tags_train_a_tagger() -> None:
    run = fit((WORDS, TAGS), "frequent")
    assert run.predict([["Ada", "lives"]])[0]["tags"] == run.predict(["Ada lives"])[0]["tags"] == ["B-PER", "O"]


def test_sequences_of_measurements_train_a_classifier() -> None:
    run = fit((SOUNDS, [0, 1] * 20))
    assert [row["label"] in ("0", "1") for row in run.predict(SOUNDS[:3])] == [True] * 3


@pytest.mark.parametrize(
    "data", [WAVE, TIMED, TIMED.rename_axis("date").reset_index()], ids=["array", "index", "frame"]
)
def test_numbers_train_a_forecaster(data: Any) -> None:
    run = seqloom.fit(data=data, task="forecasting", model="linear", options=FORECAST, quiet=True)
    found = run.predict(data)
    assert isinstance(found, list if isinstance(data, np.ndarray) else pandas.DataFrame)
    assert len(found) == 4
    assert run.evaluate(data)["mse"] < 1e-3


def test_forecasts_are_rows_of_their_own_even_if_they_are_as_many_as_the_points() -> None:
    frame = TIMED.rename_axis("date").reset_index()
    run = seqloom.fit(data=frame, task="forecasting", model="linear", options=FORECAST, quiet=True)
    found = run.predict(frame.tail(4))
    assert len(found) == 4 and "date" not in found.columns and found["time"].min() > "2020-10-26"


def test_several_variables_keep_their_places() -> None:
    both = np.stack([WAVE, WAVE**2], axis=1)
    run = seqloom.fit(data=both, task="forecasting", model="linear", options=FORECAST, quiet=True)
    assert {"value_1", "value_2"} <= set(run.predict(both)[0])
    with pytest.raises(UserError, match="1 variables, but the run has 2: value_1, value_2"):
        run.predict(WAVE)


def test_questions_come_as_dicts() -> None:
    rows = [{"context": f"Ada lives in Paris {n}", "question": "Where?", "answers": {"text": ["Paris"],
             "answer_start": [13]}} for n in range(20)]  # fmt: skip
    run = fit(rows, "bert", task="question_answering")
    assert run.predict(rows[:1])[0]["answer"] in rows[0]["context"]


def test_the_doctor_and_a_comparison_take_data_in_memory() -> None:
    assert any("2 labels" in finding.message for finding in seqloom.doctor(FRAME, task="classification"))
    found = seqloom.compare(data=(TEXTS, LABELS), models="tfidf,bag", budget="tokens=6k", trials=0, seeds=1,
                            options={"task.longest": 16}, quiet=True, out="compared")  # fmt: skip
    assert "tfidf" in repr(found)
    assert "tfidf" in found._repr_html_()


def test_a_run_in_python_shows_its_scores() -> None:
    run = fit((TEXTS, LABELS), "tfidf", out="runs/shown")
    assert repr(run).startswith("runs/shown: tfidf for classification on data in memory; ")
    assert "accuracy" in repr(run)
    assert "<td>majority baseline</td>" in run._repr_html_()


def test_the_same_call_again_trains_nothing(capsys: pytest.CaptureFixture) -> None:
    fit((TEXTS, LABELS), out="runs/again")
    seqloom.fit(data=(TEXTS, LABELS), model={"name": "gru", "width": 8}, train=TRAIN, out="runs/again")
    assert "already finished" in capsys.readouterr().err


WRONG: list[tuple[Any, str, str]] = [
    ((TEXTS, LABELS[1:]), "classification", "data: X has 40 rows, but y has 39"),
    ([], "classification", "data: empty; there are no rows"),
    ({"text": ["a"], "label": []}, "classification", "data: columns of different lengths: text 1, label 0"),
    ([b"a"], "language_model", "data: text: bytes; decode them to text first"),
    (7, "language_model", "data: int: give a path, a list, an array, a data frame or a dataset"),
    (TEXTS, "question_answering", "data: this task needs named columns; give a list of dicts or a data frame"),
    ((TEXTS, LABELS), "language_model", "data: pairs, but this task reads single texts; give a list of texts"),
    (TEXTS, "forecasting", "data: forecasting needs numbers, or a table with a column of times"),
    (np.arange(90) * 1j, "forecasting", "data: complex numbers; forecasting needs real ones"),
    (pandas.DataFrame([["a", "b", "c"]], columns=["text", "label", "label"]), "classification",
     "data: two columns are named 'label'; give each its own name"),
    (datasets.DatasetDict({"train": FRAMES[2]}), "classification", "data: several splits; give one of them: train"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "task", "message"), WRONG, ids=[task + str(n) for n, (_, task, _) in enumerate(WRONG)]
)
def test_what_cannot_be_read_gets_one_line(data: Any, task: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        fit(data, task=task)
    assert str(error.value) == message


OTHER: list[tuple[dict[str, Any], str]] = [
    ({"train": ["steps"]}, "train: give a dict of options, such as {'steps': 200}, not list"),
    ({"options": "train.steps=2"}, "options: give a dict of options, such as {'steps': 200}, not str"),
    ({"model": 5}, "model: give a dict of options, such as {'steps': 200}, not int"),
    ({"columns": "text"}, "columns: give a dict, such as {'text': 'review'}, not str"),
]


@pytest.mark.parametrize(("given", "message"), OTHER, ids=[next(iter(given)) for given, _ in OTHER])
def test_settings_of_another_form_get_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        seqloom.fit(**{"data": (TEXTS, LABELS), "task": "classification", "model": "gru", **given})
    assert str(error.value) == message


@pytest.mark.parametrize(
    "settings",
    [{"train": {"steps": 20, "rate": 1e-3}}, {"model.tie": True, "data.label": "7", "task.levels": [0.1, 0.9]},
     {"data.separator": " | ", "tokenizer.kind": "bpe"}],
)  # fmt: skip
def test_settings_survive_as_the_words_after_o(settings: dict[str, Any]) -> None:
    dotted: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: {  # noqa: E731
        f"{path}.{name}" if isinstance(value, dict) else path: item
        for path, value in given.items()
        for name, item in (value.items() if isinstance(value, dict) else [("", value)])
    }
    assert parse_overrides(as_overrides(settings)) == dotted(settings)
