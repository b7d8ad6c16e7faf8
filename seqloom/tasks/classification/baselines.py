"""Logistic regression on bags: of words and pairs of words (TF-IDF), of characters, of measurements. By scikit-learn.

They know nothing of order, train in seconds, and are hard to beat on few rows: whoever reports a model without them
hides something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.core.batch import IGNORE
from seqloom.core.order import spread
from seqloom.core.words import CJK

_ROWS, _CHARACTERS, _FEATURES = 100_000, 10_000, 200_000  # most that are learned from; of each text; kept
_SHORT = 30  # characters of a text, on average, below which it is hardly made of words
_CJK = re.compile(f"[{CJK}]")

Found = tuple[str, dict[str, np.ndarray], str]  # its name, the chances (rows, labels) of each part, and how


def bag_of_words(train: Sequence[str], wanted: np.ndarray, parts: Mapping[str, Sequence[str]]) -> Found:
    """Words and pairs of them; characters up to three where texts are written without blanks, or are a few words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    some = train[:: max(1, len(train) // 500)]
    size = sum(map(len, some))
    characters = sum(len(_CJK.findall(text)) for text in some) > 0.3 * size or size < _SHORT * len(some)
    words: dict[str, Any] = {"token_pattern": r"(?u)\b\w+\b|[^\w\s]", "ngram_range": (1, 2)}
    how = {"analyzer": "char_wb", "ngram_range": (1, 3)} if characters else words
    counts = TfidfVectorizer(sublinear_tf=True, max_features=_FEATURES, **how)
    rows = spread(min(len(train), _ROWS), len(train))
    kept, wanted = [train[n][:_CHARACTERS] for n in rows], wanted[rows]
    features = counts.fit_transform(kept)
    bags = {part: counts.transform([text[:_CHARACTERS] for text in texts]) for part, texts in parts.items()}
    name = "characters 1 to 3" if characters else "words 1 to 2"
    of = "" if len(train) <= _ROWS else f", {_ROWS:,} rows"
    return "tf-idf", _regression(features, wanted, bags), f"TF-IDF of {name}, logistic regression (scikit-learn){of}"


def bag_of_frames(train: Sequence[np.ndarray], wanted: np.ndarray, parts: Mapping[str, Sequence[np.ndarray]]) -> Found:
    """Mean and deviation of every measurement."""

    def summary(rows: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack([np.concatenate((frames.mean(0), frames.std(0))) for frames in rows])

    features, bags = summary(train), {part: summary(rows) for part, rows in parts.items()}
    told = "mean and deviation of each measurement, logistic regression (scikit-learn)"
    return "mean and deviation", _regression(features, wanted, bags), told


def _regression(features: Any, wanted: np.ndarray, bags: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    if wanted.ndim == 2:
        each = [_one(features, wanted[:, n], bags) for n in range(wanted.shape[1])]
        return {part: np.stack([chances[part] for chances in each], axis=1) for part in bags}
    known = wanted != IGNORE
    model = LogisticRegression(**_how(features)).fit(features[known], wanted[known])
    found = {}
    for part, bag in bags.items():
        chances = np.zeros((bag.shape[0], int(wanted.max()) + 1))
        chances[:, model.classes_] = model.predict_proba(bag)
        found[part] = chances
    return found


def _how(features: Any) -> dict[str, Any]:
    """Bags of words have few of many features: the solver for that is several times quicker, with the same result."""
    sparse = {"solver": "saga", "tol": 1e-2, "max_iter": 100, "random_state": 0}
    return {"C": 10.0} | (sparse if hasattr(features, "tocsr") else {"max_iter": 1000})


def _one(features: Any, wanted: np.ndarray, bags: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The chance of one label among several; one that all rows or none have needs no regression."""
    from sklearn.linear_model import LogisticRegression

    if wanted.min() == wanted.max():
        return {part: np.full(bag.shape[0], float(wanted.min())) for part, bag in bags.items()}
    model = LogisticRegression(**_how(features)).fit(features, wanted > 0.5)
    return {part: model.predict_proba(bag)[:, 1] for part, bag in bags.items()}
