"""What a classifier does, for a report: the confusion matrix, or counts per label, and the worst errors.

Evaluation counts them, because it reads the rows anyway; their texts are added when they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from seqloom.core.rows import Json
from seqloom.core.words import shorten

LABELS = 20  # of a confusion matrix; the rarest ones are merged
ERRORS = 5

Texts = Callable[[np.ndarray], Sequence[str]]  # of the rows with these numbers, in ascending order


def single(probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str], numbers: np.ndarray) -> Json:
    """One label per row; `targets`: class numbers (rows,), negative for a label unknown to training; `numbers`: of the
    rows in the test set."""
    known = targets >= 0
    predicted = probabilities.argmax(1)
    places, kept = _places(np.bincount(targets[known], minlength=len(labels)))
    size = len(kept) + (len(kept) < len(labels))
    counts = np.zeros((size, size), np.int64)
    np.add.at(counts, (places[targets[known]], places[predicted[known]]), 1)
    wrong = np.flatnonzero(known & (predicted != targets))
    confidence = probabilities.max(1)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:ERRORS]
    errors = [_error(labels[targets[n]], labels[predicted[n]], confidence[n], numbers[n]) for n in worst]
    return {
        "kind": "confusion",
        "rows": int(known.sum()),
        "unknown": int((~known).sum()),
        "labels": [labels[n] for n in kept],
        "merged": len(labels) - len(kept),
        "counts": counts.tolist(),
        "wrong": len(wrong),
        "errors": errors,
    }


def several(probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str], numbers: np.ndarray) -> Json:
    """Any number of labels per row: both arrays are (rows, labels); a label is predicted from 0.5 on."""
    actual, predicted = targets > 0.5, probabilities >= 0.5
    found = {"wanted": actual.sum(0), "found": predicted.sum(0), "right": (actual & predicted).sum(0)}
    often = np.argsort(-found["wanted"], kind="stable")[:LABELS]
    distance = np.abs(probabilities - actual).max(1)  # the most confident wrong decision of each row
    wrong = np.flatnonzero((actual != predicted).any(1))
    worst = wrong[np.argsort(-distance[wrong], kind="stable")][:ERRORS]

    def named(chosen: np.ndarray) -> str:
        return ", ".join(labels[n] for n in np.flatnonzero(chosen).tolist())

    errors = [_error(named(actual[n]), named(predicted[n]), distance[n], numbers[n]) for n in worst]
    return {
        "kind": "confusion",
        "rows": len(targets),
        "classes": [{"label": labels[n]} | {name: int(each[n]) for name, each in found.items()} for n in often],
        "merged": len(labels) - len(often),
        "wrong": len(wrong),
        "errors": errors,
    }


def with_texts(found: Json, texts: Texts) -> Json:
    """The same, with the texts of the errors."""
    numbers = sorted(error["row"] - 1 for error in found["errors"])
    known = dict(zip(numbers, texts(np.array(numbers, int)), strict=False))  # measurements have none
    return found | {"errors": [e | {"text": shorten(known.get(e["row"] - 1, ""))} for e in found["errors"]]}


def _places(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of each label in the matrix, and the labels with a row of their own; the others share the last."""
    if len(counts) <= LABELS:
        return np.arange(len(counts)), np.arange(len(counts))
    kept = np.sort(np.argsort(-counts, kind="stable")[: LABELS - 1])
    places = np.full(len(counts), LABELS - 1)
    places[kept] = np.arange(LABELS - 1)
    return places, kept


def _error(gold: str, predicted: str, probability: float, number: int) -> Json:
    """`number`: of the row in its file, from 0."""
    return {
        "gold": gold,
        "predicted": predicted,
        "probability": round(float(probability), 4),
        "row": int(number) + 1,
    }
