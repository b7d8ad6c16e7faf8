"""The scikit-learn estimators: their own conventions, and what is theirs to decide."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

import seqloom
from seqloom import Forecaster, SequenceClassifier, SequenceTagger
from seqloom.core.errors import UserError

TEXTS = [f"{text} {n}" for n, text in enumerate(["a good film", "a bad film", "what a fine day", "an awful day"] * 10)]
LABELS = ["pos", "neg"] * 20
WORDS = [["Ada", "lives", "in", f"Paris{n}"] for n in range(20)]
TAGS = [["B-PER", "O", "O", "B-LOC"]] * 20
WAVE = np.sin(np.arange(300) / 5)
DAYS = pandas.Series(WAVE, index=pandas.date_range("2020-01-01", periods=300, freq="D"), name="load")
BRIEF = {"steps": 2, "threads": 1}

QUICK = SequenceClassifier(
    {"name": "rnn", "width": 16},
    train={"steps": 25, "threads": 1, "batch": 256, "rate": 0.05, "warmup": 0, "evaluate_every": 25},
    options={"task.batch_tokens": 0, "task.pooling": "mean", "task.calibrate": False},
)
CLASSIFIER_FAILS = {
    "check_methods_subset_invariance": "probabilities come from float32 and are rounded to six digits: in a batch of "
    "another size the last digit may differ",
}
FORECASTER_FAILS = {
    "check_methods_sample_order_invariance": "rows are points in time: their order is the series",
    "check_methods_subset_invariance": "a part of a series has another future",
    "check_fit2d_1feature": "ten points are too few for a training and a validation set, and the error says so",
    "check_fit1d": "a series of one variable is 1-D",
    "check_fit2d_predict1d": "a series of one variable is 1-D; for a run of three, the error names their number",
}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk, and runs leave nothing in the folder of another test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def folders(place: Path) -> list[Path]:
    gc.collect()
    return list(place.glob("seqloom-*"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [(QUICK, CLASSIFIER_FAILS), (Forecaster(horizon=2, context=3, train={"threads": 1}), FORECASTER_FAILS)],
    ids=["classifier", "forecaster"],
)
def test_scikit_learns_own_checks_pass_except_for_those_named(estimator: Any, expected: dict[str, str]) -> None:
    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in found if result["status"] == "failed"}
    assert not failed
    assert {result["check_name"] for result in found if result["status"] == "xfail"} <= set(expected)
    assert len(found) > 35


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_a_tagger_can_be_cloned_and_printed_and_sets_its_parameters() -> None:
    """scikit-learn's other checks need a table of numbers as X, and a tagger reads lists of words."""
    assert {result["status"] for result in check_estimator(SequenceTagger())} == {"passed"}
    tagger = SequenceTagger("frequent", valid_fraction=0.2)
    assert clone(tagger).get_params() == tagger.get_params()
    assert "frequent" in repr(tagger.set_params(out="runs/kept"))
    assert tagger.out == "runs/kept"


def test_importing_the_package_loads_neither_torch_nor_scikit_learn() -> None:
    code = "import sys, seqloom; sys.exit(any(name in sys.modules for name in ('torch', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(seqloom.__file__).parents[1]).returncode == 0


CLASSES = [["pos", "neg"] * 20, [7, 3] * 20, [True, False] * 20, [" a", "a"] * 20, [0.0, 1.0] * 20]


@pytest.mark.parametrize("labels", CLASSES, ids=["texts", "numbers", "truth", "spaces", "floats"])
def test_labels_come_back_as_they_were(labels: list[Any]) -> None:
    model = SequenceClassifier("tfidf").fit(TEXTS, labels)
    found = model.predict(TEXTS)
    assert found.dtype == np.asarray(labels).dtype
    assert (found == np.asarray(labels)).mean() == model.score(TEXTS, labels) > 0.9


def test_the_run_of_a_classifier_has_the_labels_as_names() -> None:
    assert SequenceClassifier("tfidf").fit(TEXTS, LABELS).run_.task.labels == ["neg", "pos"]


def test_probabilities_are_in_the_order_of_the_classes_and_sum_to_one() -> None:
    model = SequenceClassifier("tfidf").fit(TEXTS, LABELS)
    found = model.predict_proba(TEXTS)
    assert list(model.classes_) == ["neg", "pos"]
    np.testing.assert_allclose(found.sum(1), 1)
    assert (model.classes_[found.argmax(1)] == model.predict(TEXTS)).all()


def test_an_empty_text_gets_the_shares_of_the_classes() -> None:
    model = SequenceClassifier("tfidf").fit(TEXTS, ["pos", "neg", "pos", "pos"] * 10)
    np.testing.assert_allclose(model.predict_proba(["", "  "]), [[0.25, 0.75]] * 2)


FORMS = {
    "array": np.array(TEXTS),
    "series": pandas.Series(TEXTS),
    "strings": pandas.Series(TEXTS, dtype="string"),
    "frame": pandas.DataFrame({"review": TEXTS}),
    "column": np.array(TEXTS, dtype=object)[:, None],
}


@pytest.mark.parametrize("X", FORMS.values(), ids=list(FORMS))
def test_texts_come_in_every_usual_form(X: Any) -> None:
    same = SequenceClassifier("tfidf").fit(TEXTS, LABELS).predict_proba(TEXTS)
    np.testing.assert_allclose(SequenceClassifier("tfidf").fit(X, LABELS).predict_proba(X), same)


def test_measurements_come_as_rows_of_numbers_as_one_array_or_as_arrays_of_different_lengths() -> None:
    draw = np.random.default_rng(0)
    for X in (
        draw.normal(size=(40, 6)),
        draw.normal(size=(40, 6, 2)),
        [draw.normal(size=(4 + n % 3, 2)) for n in range(40)],
    ):
        model = SequenceClassifier({"name": "gru", "width": 8}, train=BRIEF).fit(X, LABELS)
        assert model.predict_proba(X).shape == (40, 2)


def test_cross_validation_grid_search_and_pipelines_work() -> None:
    assert cross_val_score(SequenceClassifier("tfidf"), TEXTS, LABELS, cv=3).mean() > 0.8
    grid = {"model": ["tfidf", {"name": "tfidf", "order": 1}], "options": [None, {"task.longest": 8}]}
    search = GridSearchCV(SequenceClassifier("tfidf"), grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.best_estimator_.predict(TEXTS[:2]).tolist() == ["pos", "neg"]
    chosen = ColumnTransformer([("text", "passthrough", ["review"])])
    pipeline = Pipeline([("choose", chosen), ("classify", SequenceClassifier("tfidf"))])
    frame = pandas.DataFrame({"id": range(40), "review": TEXTS})
    assert pipeline.fit(frame, LABELS).score(frame, LABELS) > 0.9


@pytest.mark.parametrize("duplicate", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy])
def test_a_fitted_estimator_survives_pickling_and_copying(duplicate: Any) -> None:
    model = SequenceClassifier({"name": "gru", "width": 8}, train=BRIEF).fit(TEXTS, LABELS)
    expected, again = model.predict_proba(TEXTS), duplicate(model)
    del model
    gc.collect()
    np.testing.assert_array_equal(again.predict_proba(TEXTS), expected)
    assert again.run_.evaluate((TEXTS, LABELS))["accuracy"] >= 0


def test_every_estimator_survives_pickling() -> None:
    tagger, forecaster = SequenceTagger("frequent").fit(WORDS, TAGS), Forecaster(horizon=4).fit(DAYS)
    assert pickle.loads(pickle.dumps(tagger)).predict(WORDS) == tagger.predict(WORDS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(forecaster)).predict(), forecaster.predict())


def test_a_temporary_run_lives_as_long_as_someone_uses_it(tmp_path: Path) -> None:
    model = SequenceClassifier("tfidf").fit(TEXTS, LABELS)
    run = model.run_
    del model
    assert len(folders(tmp_path)) == 1
    assert "accuracy" in repr(run)
    del run
    assert not folders(tmp_path)


def test_a_failed_fit_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown model 'lsmt'; did you mean 'lstm'"):
        SequenceClassifier("lsmt").fit(TEXTS, LABELS)
    assert not folders(tmp_path)


def test_a_run_folder_that_is_given_stays() -> None:
    SequenceClassifier("tfidf", out="runs/kept").fit(TEXTS, LABELS)
    gc.collect()
    assert seqloom.load("runs/kept").predict(["a good film"])[0]["label"] == "pos"


def test_the_same_random_state_gives_the_same_model_and_another_one_does_not() -> None:
    def proba(seed: Any) -> np.ndarray:
        model = SequenceClassifier({"name": "gru", "width": 8}, train=BRIEF, random_state=seed)
        return model.fit(TEXTS, LABELS).predict_proba(TEXTS)

    np.testing.assert_array_equal(proba(1), proba(1))
    np.testing.assert_array_equal(proba(np.random.RandomState(1)), proba(np.random.RandomState(1)))
    assert not np.array_equal(proba(1), proba(2))


def test_estimators_are_quiet_unless_asked(capsys: pytest.CaptureFixture) -> None:
    SequenceClassifier("tfidf").fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    SequenceClassifier("tfidf", verbose=True).fit(TEXTS, LABELS)
    assert "tfidf" in capsys.readouterr().err


def test_every_class_is_learned_even_if_it_is_rare() -> None:
    labels = [*LABELS[:-1], "rare"]
    assert SequenceClassifier("tfidf", valid_fraction=0.5).fit(TEXTS, labels).run_.task.labels == ["neg", "pos", "rare"]


def test_words_get_tags_and_the_score_says_what_it_is() -> None:
    tagger = SequenceTagger("frequent").fit(WORDS, TAGS)
    assert tagger.predict([["Ada", "lives"], []]) == [["B-PER", "O"], []]
    assert tagger.score_name_ == "f1"
    assert tagger.score(WORDS, TAGS) == tagger.run_.evaluate((WORDS, TAGS))["f1"]
    numbers = SequenceTagger("frequent").fit(WORDS, [[1, 2, 2, 3]] * 20)
    assert numbers.score_name_ == "accuracy"
    assert numbers.predict([["Ada", "lives"]]) == [[1, 2]]
    assert numbers.classes_.tolist() == [1, 2, 3]


def test_a_forecast_continues_the_series_of_fit_or_another() -> None:
    model = Forecaster(horizon=12).fit(WAVE)
    future = np.sin(np.arange(300, 312) / 5)
    np.testing.assert_allclose(model.predict(), future, atol=0.05)
    np.testing.assert_allclose(model.predict(5), future[:5], atol=0.05)
    np.testing.assert_allclose(model.predict(series=WAVE[:200]), WAVE[200:212], atol=0.05)
    lower, upper = model.predict_interval(0.9)
    assert lower.shape == upper.shape == (12,)
    assert (lower <= upper).all()


def test_several_variables_and_times_are_forecast() -> None:
    both = np.stack([WAVE, WAVE**2], axis=1)
    model = Forecaster(horizon=4).fit(both)
    assert model.predict().shape == model.predict_interval(0.8, 4)[0].shape == (4, 2)
    assert model.n_features_in_ == 2
    timed = Forecaster(horizon=4).fit(pandas.DataFrame(both, index=DAYS.index, columns=["a", "b"]))
    assert timed.predict().shape == (4, 2)
    assert timed.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("series", [WAVE, DAYS], ids=["array", "times"])
def test_a_forecaster_is_scored_on_what_follows(series: Any) -> None:
    assert Forecaster(horizon=12).fit(series[:270]).score(series[270:]) > 0.95
    scores = cross_val_score(Forecaster(horizon=12), series, cv=TimeSeriesSplit(2, test_size=12), error_score="raise")
    assert scores.min() > 0.9


@pytest.mark.parametrize("estimator", [SequenceClassifier(), SequenceTagger(), Forecaster()])
def test_before_fit_an_estimator_says_so(estimator: Any) -> None:
    with pytest.raises(NotFittedError):
        estimator.predict([["a"]])


TFIDF, TAGGER = SequenceClassifier("tfidf"), SequenceTagger()
WRONG: list[tuple[Any, Any, Any, str]] = [
    (TFIDF, TEXTS, ["a"] * 40, "y has one class, 'a'; a classifier needs at least two"),
    (TFIDF, "a text", LABELS, "X: a single str; give a list of texts, or arrays of measurements"),
    (TFIDF, [*TEXTS[1:], None], LABELS, "X[39]: None is not a text; replace missing texts by an empty one"),
    (TFIDF, [np.zeros((0, 2))] * 40, LABELS, "X[0]: an empty sequence; leave it out"),
    (SequenceClassifier(valid_fraction=1), TEXTS, LABELS, "valid_fraction=1: must be at least 0 and below 1"),
    (SequenceClassifier(train={"step": 5}), TEXTS, LABELS, "train.step: no such option; did you mean train.steps?"),
    (TAGGER, ["Ada lives"], [["O"]], "X[0]: 'Ada lives' is not a list of words; for a text, give text.split()"),
    (TAGGER, [["Ada", "lives"]], [["O"]], "X[0] has 2 words, but y[0] has 1 tags"),
    (TAGGER, [["Ada"]], [["O"], ["O"]], "X has 1 sentences, but y has 2"),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "X", "y", "message"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_a_mistake_is_one_line_and_a_value_error(estimator: Any, X: Any, y: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        estimator.fit(X, y)
    assert isinstance(error.value, ValueError)
    assert str(error.value) == message


def test_a_forecaster_names_the_steps_and_intervals_that_it_has() -> None:
    model = Forecaster(horizon=4).fit(WAVE)
    with pytest.raises(ValueError, match="steps=5: this run forecasts 1 to 4 points; set horizon=5"):
        model.predict(5)
    with pytest.raises(
        ValueError, match=r'coverage=0.6: this run has the quantiles .*"task.levels": \[0.2, 0.5, 0.8\]'
    ):
        model.predict_interval(0.6)


def test_other_data_than_in_fit_is_refused() -> None:
    model = SequenceClassifier("tfidf").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="X: 1 measurements per step, but fit had texts"):
        model.predict(np.zeros((2, 3)))


HALF = "a\ud800"
WRONG: dict[str, tuple[Any, Any, Any, str]] = {  # estimator, X, y, the error
    "text": (SequenceClassifier(train=BRIEF), [HALF, *TEXTS[1:]], LABELS, r"X\[0\]: not valid text: a lone surrogate"),
    "label": (SequenceClassifier(train=BRIEF), TEXTS, [HALF, *LABELS[1:]], "y: not valid text"),
    "word": (SequenceTagger(train=BRIEF), [[HALF, "b", "c", "d"], *WORDS[1:]], TAGS, r"X\[0\]: not valid text"),
    "empty word": (SequenceTagger(train=BRIEF), [["", "b", "c", "d"], *WORDS[1:]], TAGS, r"X\[0\]: an empty word"),
    "tag": (SequenceTagger(train=BRIEF), WORDS, [[HALF, "O", "O", "O"], *TAGS[1:]], r"y\[0\]: not valid text"),
    "empty tag": (SequenceTagger(train=BRIEF), WORDS, [["", "O", "O", "O"], *TAGS[1:]], r"y\[0\]: an empty tag"),
    "large numbers": (Forecaster(train=BRIEF), WAVE * 1e308, None, "too large to compute with; use another unit"),
    "options": (SequenceClassifier(train=3), TEXTS, LABELS, "train=3: give a dict of options"),
    "model": (SequenceClassifier(3), TEXTS, LABELS, "model=3: give a name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_run_can_learn_from_is_a_value_error(name: str) -> None:
    estimator, X, y, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_a_word_without_letters_cannot_be_tagged() -> None:
    tagger = SequenceTagger({"name": "frequent"}).fit(WORDS, TAGS)
    with pytest.raises(ValueError, match=r"X\[0\]: an empty word"):
        tagger.predict([[" "]])


def test_data_in_memory_has_no_half_characters() -> None:
    with pytest.raises(UserError, match=r"data\[1\]: not valid text: a lone surrogate"):
        seqloom.fit(task="classification", data=(["a", HALF], ["b", "c"]), model="gru")
