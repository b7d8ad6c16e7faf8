"""SequenceClassifier: texts or sequences of measurements to labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from seqloom.core.errors import check_encodable
from seqloom.estimators.base import InputError, SequenceEstimator, as_value_error, rows_of
from seqloom.estimators.inputs import Sequences, read_sequences


class SequenceClassifier(ClassifierMixin, SequenceEstimator):
    """A classifier of texts or of sequences of measurements.

    X is a list, array or series of texts, or a table with one column of them; or measurements: an array (rows, time,
    features), or a list of arrays (time, features) that may differ in length. A 2-D array of numbers (rows, n) is read
    as sequences of n steps with one measurement each.

    `model`: a name, or a dict of options with a "name"; `train`, `tokenizer`: dicts of options; `options`: any setting
    by its path, like {"task.longest": 64}; `valid_fraction`: share of every class that is held out to stop training in
    time and to calibrate the probabilities, 0 for none; `random_state`: the seed of held-out rows and training, by
    default always the same; `out`: a run folder to keep, where the same `fit` again trains nothing; `verbose`: print
    the progress.

    After `fit`, `classes_` are the labels as they were in y, and `run_` is the run: its scores, history and model.
    """

    _task = "classification"

    def fit(self, X: Any, y: Any) -> Self:
        found, labels = read_sequences(self, X, reset=True), self._labels(X, y)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {self.classes_.tolist()[0]!r}; a classifier needs at least two")
        self.class_prior_ = np.bincount(numbers) / len(numbers)
        self._names, seed = _names(self.classes_), self._seed()
        names, valid = [self._names[n] for n in numbers], self._held_out(numbers, seed)
        parts = [(rows_of(found.items, part), rows_of(names, part)) for part in (~valid, valid)]
        held_out = parts[1] if valid.any() else None
        self._learn(parts[0], held_out, seed, data__valid_fraction=None if valid.any() else 0.0)
        self._features = found.features
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, classes) in the order of `classes_`; for an empty text, the shares of the classes in y."""
        run = self._fitted()
        found = self._same(read_sequences(self, X, reset=False))
        table = np.tile(self.class_prior_, (len(found.items), 1))
        with as_value_error():
            for n, answer in enumerate(run.task.predict(run.model, found.rows())):
                if known := answer.get("probabilities"):
                    table[n] = [known.get(name, 0.0) for name in self._names]
        shares: np.ndarray = table / table.sum(1, keepdims=True)  # they are rounded
        return shares

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        best = self.predict_proba(X).argmax(1)
        labels: np.ndarray = self.classes_[best]
        return labels

    def _labels(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise InputError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        check_consistent_length(X, y)
        labels: np.ndarray = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        with as_value_error():
            check_encodable("y", " ".join(map(str, np.unique(labels))))
        return labels

    def _same(self, found: Sequences) -> Sequences:
        """Refuse other features than those of `fit`."""
        if found.features != self._features:
            shown = [f"{size} measurements per step" if size else "texts" for size in (found.features, self._features)]
            raise InputError(f"X: {shown[0]}, but fit had {shown[1]}")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.three_d_array = True
        return tags


def _names(classes: np.ndarray) -> list[str]:
    """The labels of the run: the classes as texts, or numbered where texts would be confused."""
    names = [str(label) for label in classes.tolist()]
    clear = len(set(names)) == len(names) and all(name and name == name.strip() and "\n" not in name for name in names)
    return names if clear else [str(n) for n in range(len(names))]
