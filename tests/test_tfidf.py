"""TF-IDF and logistic regression: the vectors are scikit-learn's, and a run can be saved, loaded and used."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from seqloom.core.batch import IGNORE, pad
from seqloom.core.errors import UserError
from seqloom.layers.logistic import STRENGTHS, USUAL, fit_logistic
from seqloom.layers.ngrams import TfIdf, ngram_keys
from seqloom.runs.fit import fit
from seqloom.runs.run import Run, load


def documents(count: int, seed: int = 0, vocabulary: int = 9) -> list[list[int]]:
    chance = random.Random(seed)
    return [chance.choices(range(vocabulary), k=chance.randint(0, 12)) for _ in range(count)]


def dense(model: TfIdf, rows: list[list[int]]) -> np.ndarray:
    vectors = model(*pad([torch.tensor(row, dtype=torch.long) for row in rows]))
    return vectors.times(torch.eye(len(model))).numpy()


def test_keys_tell_ngrams_of_all_sizes_apart() -> None:
    ids = torch.tensor(documents(1, vocabulary=3)[0] * 9)[None]
    keys = ngram_keys(ids, None, 3, 1, 4)
    seen: dict[int, tuple[int, ...]] = {}
    for end in range(ids.size(1)):
        for size in range(1, 5):
            key, gram = int(keys[0, end, size - 1]), tuple(ids[0, max(0, end - size + 1) : end + 1].tolist())
            assert (key == 0) == (len(gram) < size)
            assert key == 0 or seen.setdefault(key, gram) == gram
    assert len(set(seen.values())) == len(seen)


def test_vectors_are_those_of_scikit_learn() -> None:
    train, other = documents(40), documents(10, seed=1)
    theirs = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\S+", dtype=np.float64)
    words = [[" ".join(map(str, row)) for row in rows] for rows in (train, other)]
    theirs.fit(words[0])
    ours = TfIdf(9, 2)
    ours.count([pad([torch.tensor(row, dtype=torch.long) for row in part]) for part in (train[:15], train[15:])])
    assert len(ours) == len(theirs.vocabulary_)
    wanted = theirs.transform(words[1]).toarray()
    grams = {tuple(map(int, gram.split())): column for gram, column in theirs.vocabulary_.items()}
    by_key = sorted(grams, key=lambda gram: sum((id + 1) * 10 ** (len(gram) - 1 - n) for n, id in enumerate(gram)))
    np.testing.assert_allclose(dense(ours, other), wanted[:, [grams[gram] for gram in by_key]], atol=1e-6)


def test_only_the_most_frequent_ngrams_are_kept_and_those_in_every_row_are_not() -> None:
    rows = [torch.tensor(row) for row in ([0, 1, 2], [0, 1, 3], [0, 4, 5], [0, 1, 4])]
    ours = TfIdf(6, 1, most=2)
    assert ours.count([pad(rows)]) == 4
    assert ours.keys[:-1].tolist() == [2, 5]  # ids 1 and 4; 0 is in every row
    assert dense(ours, [[0, 3], []]).tolist() == [[0, 0], [0, 0]]


def test_the_penalty_is_chosen_by_rows_held_out() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 5))
    clean = (features[:, 0] > 0).astype(int)
    noise = rng.integers(0, 2, 300)
    assert fit_logistic(features, clean, 2).strength == max(STRENGTHS)
    assert fit_logistic(np.repeat(features[:, :1], 40, axis=1) * rng.standard_normal((300, 40)), noise, 2).strength == 1
    assert fit_logistic(features[:4], clean[:4], 2).strength == USUAL, "too few rows to choose"


def test_labels_without_rows_are_improbable_and_unknown_ones_are_left_out() -> None:
    features, targets = np.eye(3)[[0, 1, 2] * 20], np.array([0, 2, IGNORE] * 20)
    found = fit_logistic(features, targets, 4)
    logits = features @ found.weight + found.bias
    assert logits[0].argmax() == 0 and logits[1].argmax() == 2
    assert np.isfinite(logits).all() and (logits[:, [1, 3]].max(1) < logits[:, [0, 2]].max(1) - 2).all()
    several = fit_logistic(features, np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1]] * 20), 3)
    logits = features @ several.weight + several.bias
    assert logits[0, 0] > 0 > logits[1, 0] and (logits[:, 1] < 0).all() and (logits[:, 2] > 0).all()


def write(path: Path, count: int = 120, multi: bool = False) -> Path:
    """The label is whether `Two` stands right after `one`: single words do not tell."""
    chance, lines = random.Random(1), []
    for _ in range(count):
        words = chance.choices(["one", "Two", "three"], k=chance.randint(3, 8))
        label: Any = "yes" if "one Two" in " ".join(words) else "no"
        if multi:
            label = sorted({word for word in words[:2] if word != "three"})
        lines.append(json.dumps({"text": " ".join(words), "other": words[0], "label": label}))
    path.write_text("\n".join(lines) + "\n")
    return path


def learned(folder: Path, *extra: str, data: Path | None = None) -> Run:
    options = ["tokenizer.min_count=1", "train.threads=1", "data.valid_fraction=0.3", *extra]
    return fit(None, task="classification", data=str(data or write(folder / "a.jsonl")), model="tfidf",
               out=folder / "run", overrides=options, quiet=True)  # fmt: skip


def test_a_saved_run_says_exactly_what_the_fitted_one_said(tmp_path: Path) -> None:
    run = learned(tmp_path)
    assert run.summary["scores"]["valid"]["accuracy"] > 0.95 and run.summary["steps"] == 0
    texts = ["one Two three", "Two one three", "unseen", ""]
    answers = list(load(tmp_path / "run").predict(texts=texts))
    assert answers == list(run.predict(texts=texts))
    assert [answer["label"] for answer in answers[:2]] == ["yes", "no"] and answers[3]["label"] is None
    assert load(tmp_path / "run").evaluate(str(tmp_path / "a.jsonl"))["accuracy"] > 0.95
    assert learned(tmp_path).summary == run.summary, "a finished run is left alone"


@pytest.mark.parametrize("order", [1, 2])
def test_words_alone_do_not_know_their_neighbours(tmp_path: Path, order: int) -> None:
    accuracy = learned(tmp_path, f"model.order={order}").summary["scores"]["valid"]["accuracy"]
    assert (accuracy > 0.95) == (order == 2)


def test_two_texts_several_labels_and_rare_labels(tmp_path: Path) -> None:
    for name in ("two", "many", "rare"):
        (tmp_path / name).mkdir()
    run = learned(tmp_path / "two", "data.second=other", "tokenizer.kind=characters")
    assert run.model.features.longest == 3  # type: ignore[union-attr]
    many = learned(tmp_path / "many", "data.separator=|", data=write(tmp_path / "b.jsonl", multi=True))
    (answer,) = load(tmp_path / "many" / "run").predict(texts=["one Two three"])
    assert set(answer["labels"]) == {"one", "Two"} and many.summary["scores"]["valid"]["micro_f1"] > 0.6
    balanced = learned(tmp_path / "rare", "model.balanced=true", "model.features=4", "task.longest=6")
    assert len(balanced.model.features) == 4  # type: ignore[arg-type]


def test_lower_case_is_part_of_the_vocabulary(tmp_path: Path) -> None:
    run = learned(tmp_path, "tokenizer.lower=true")
    first, second, _ = again = list(load(tmp_path / "run").predict(texts=["ONE two", "one Two", "two one"]))
    assert first["probabilities"] == second["probabilities"] and first["label"] == "yes"
    assert again == list(run.predict(texts=["ONE two", "one Two", "two one"]))
    (tmp_path / "other").mkdir()
    plain = learned(tmp_path / "other")
    first, second = plain.predict(texts=["ONE two", "one Two"])
    assert first["probabilities"] != second["probabilities"]


@pytest.mark.parametrize(("task", "data"), [("masked_lm", "sample:python-docs"), ("tagging", "sample:places")])
def test_other_tasks_are_refused_in_one_line(tmp_path: Path, task: str, data: str) -> None:
    with pytest.raises(UserError, match=f"model tfidf: assigns labels to texts, which {task} does not"):
        fit(None, task=task, data=data, model="tfidf", out=tmp_path / "run", quiet=True)


def test_measurements_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model tfidf: assigns labels to texts"):
        fit(None, task="classification", data="sample:waves", model="tfidf", out=tmp_path / "run", quiet=True,
            overrides=["task.input=measurements"])  # fmt: skip
