"""SequenceTagger: a tag for every word of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from seqloom.core.errors import check_encodable
from seqloom.estimators.base import InputError, SequenceEstimator, as_value_error, rows_of

Words = Sequence[Sequence[str]]


class SequenceTagger(SequenceEstimator):
    """A tagger of words: named entities, parts of speech.

    X is a list of sentences, each a list of words; y has a list of as many tags for each. Parameters as in
    `SequenceClassifier`; `valid_fraction` is a share of the sentences.

    `score` is the F1 of entities if the tags name entities (B-PER, I-PER, O), else the share of words with the right
    tag; `score_name_` says which, "f1" or "accuracy". `classes_` are the tags, `run_` is the run.
    """

    _task = "tagging"

    def fit(self, X: Words, y: Sequence[Sequence[Any]]) -> Self:
        sentences = _sentences(X)
        tags = _tags(sentences, y)
        seed = self._seed()
        valid = self._held_out(np.zeros(len(sentences), int), seed)
        known = {str(tag): tag for row in tags for tag in row}
        names = [[str(tag) for tag in row] for row in tags]
        parts = [(rows_of(sentences, part), rows_of(names, part)) for part in (~valid, valid)]
        held_out = parts[1] if valid.any() else None
        self._learn(parts[0], held_out, seed, data__valid_fraction=None if valid.any() else 0.0)
        self._known = known
        self.classes_ = np.array([known[name] for name in sorted(known)])
        self.score_name_ = self.run_.task.metric
        return self

    def predict(self, X: Words) -> list[list[Any]]:
        """A list of tags for every sentence."""
        run = self._fitted()
        rows = ({"line": n, "words": words} for n, words in enumerate(_sentences(X), 1))
        with as_value_error():
            found = list(run.task.predict(run.model, rows))
        return [[self._known.get(tag, tag) for tag in row["tags"]] for row in found]

    def score(self, X: Words, y: Sequence[Sequence[Any]]) -> float:
        """F1 of entities, or the share of words with the right tag: see `score_name_`."""
        run, sentences = self._fitted(), _sentences(X)
        names = [[str(tag) for tag in row] for row in _tags(sentences, y)]
        with as_value_error():
            return float(run.evaluate((sentences, names))[self.score_name_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        return tags


def _sentences(X: Any) -> list[list[str]]:
    if isinstance(X, str) or not hasattr(X, "__iter__"):
        raise InputError(f"X: {type(X).__name__}; give a list of sentences, each a list of words")
    sentences = []
    for n, words in enumerate(X):
        if isinstance(words, str) or not hasattr(words, "__iter__"):
            raise InputError(f"X[{n}]: {words!r} is not a list of words; for a text, give text.split()")
        if wrong := [word for word in words if not isinstance(word, str)]:
            raise InputError(f"X[{n}]: {wrong[0]!r} is not a word; give texts")
        if not all(word.strip() for word in words):
            raise InputError(f"X[{n}]: an empty word; leave it out, with its tag")
        with as_value_error():
            check_encodable(f"X[{n}]", " ".join(words))
        sentences.append([str(word) for word in words])
    return sentences


def _tags(sentences: list[list[str]], y: Any) -> list[list[Any]]:
    """As many as there are words."""
    if y is None:
        raise InputError("This SequenceTagger estimator requires y to be passed, but the target y is None")
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in y]
    if len(rows) != len(sentences):
        raise InputError(f"X has {len(sentences):,} sentences, but y has {len(rows):,}")
    for n, (words, tags) in enumerate(zip(sentences, rows, strict=True)):
        if not isinstance(tags, list | tuple):
            raise InputError(f"y[{n}]: {tags!r} is not a list of tags")
        if len(words) != len(tags):
            raise InputError(f"X[{n}] has {len(words)} words, but y[{n}] has {len(tags)} tags")
        if not all(str(tag).strip() for tag in tags):
            raise InputError(f"y[{n}]: an empty tag; a word outside of all entities has the tag O")
        with as_value_error():
            check_encodable(f"y[{n}]", " ".join(map(str, tags)))
    return [list(row) for row in rows]
