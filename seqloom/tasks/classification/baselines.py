"""Logistic regression by scikit-learn on TF-IDF of words or characters, or on statistics of measurements.

These baselines ignore order, train in seconds, and are hard to beat on small data: compare every model with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.core.batch import IGNORE
from seqloom.core.order import spread
from seqloom.core.rows import Json
from seqloom.core.words import CJK

_ROWS, _CHARACTERS, _FEATURES = 100_000, 10_000, 200_000  # at most: training rows; characters per text; features
_SHORT = 30  # mean characters per text below which character n-grams are used
_CJK = re.compile(f"[{CJK}]")

Found = tuple[str, dict[str, np.ndarray], str]  # name, probabilities (rows, labels) for each split, protocol


def bag_of_words(train: Sequence[str], targets: np.ndarray, parts: Mapping[str, Sequence[str]]) -> Found:
    """Word unigrams and bigrams; character n-grams up to 3 for scripts without spaces and very short texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    some = train[:: max(1, len(train) // 500)]
    size = sum(map(len, some))
    characters = sum(len(_CJK.findall(text)) for text in some) > 0.3 * size or size < _SHORT * len(some)
    words: Json = {"token_pattern": r"(?u)\b\w+\b|[^\w\s]", "ngram_range": (1, 2)}
    how = {"analyzer": "char_wb", "ngram_range": (1, 3)} if characters else words
    counts = TfidfVectorizer(sublinear_tf=True, max_features=_FEATURES, **how)
    rows = spread(min(len(train), _ROWS), len(train))
    kept, targets = [train[n][:_CHARACTERS] for n in rows], targets[rows]
    features = counts.fit_transform(kept)
    bags = {part: counts.transform([text[:_CHARACTERS] for text in texts]) for part, texts in parts.items()}
    name = "character 1- to 3-grams" if characters else "word 1- to 2-grams"
    of = "" if len(train) <= _ROWS else f", trained on {_ROWS:,} rows"
    return "tf-idf", _regression(features, targets, bags), f"TF-IDF of {name}, logistic regression (scikit-learn){of}"


def bag_of_frames(train: Sequence[np.ndarray], targets: np.ndarray, parts: Mapping[str, Sequence[np.ndarray]]) -> Found:
    """Mean and standard deviation of every measurement."""

    def summary(rows: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack([np.concatenate((frames.mean(0), frames.std(0))) for frames in rows])

    features, bags = summary(train), {part: summary(rows) for part, rows in parts.items()}
    protocol = "mean and standard deviation of each measurement, logistic regression (scikit-learn)"
    return "mean and deviation", _regression(features, targets, bags), protocol


def _regression(features: Any, targets: np.ndarray, bags: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    if targets.ndim == 2:
        each = [_one_label(features, targets[:, n], bags) for n in range(targets.shape[1])]
        return {part: np.stack([probabilities[part] for probabilities in each], axis=1) for part in bags}
    known = targets != IGNORE
    model = LogisticRegression(**_settings(features)).fit(features[known], targets[known])
    found = {}
    for part, bag in bags.items():
        probabilities = np.zeros((bag.shape[0], int(targets.max()) + 1))
        probabilities[:, model.classes_] = model.predict_proba(bag)
        found[part] = probabilities
    return found


def _settings(features: Any) -> Json:
    """Bag-of-words features are sparse: saga is several times faster on them, with the same result."""
    sparse = {"solver": "saga", "tol": 1e-2, "max_iter": 100, "random_state": 0}
    return {"C": 10.0} | (sparse if hasattr(features, "tocsr") else {"max_iter": 1000})


def _one_label(features: Any, targets: np.ndarray, bags: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The probability of one of several labels; constant if all rows or none have it."""
    from sklearn.linear_model import LogisticRegression

    if targets.min() == targets.max():
        return {part: np.full(bag.shape[0], float(targets.min())) for part, bag in bags.items()}
    model = LogisticRegression(**_settings(features)).fit(features, targets > 0.5)
    return {part: model.predict_proba(bag)[:, 1] for part, bag in bags.items()}
