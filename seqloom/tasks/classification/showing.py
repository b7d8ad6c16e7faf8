"""What a classifier does, for a report: the confusion matrix, or counts per label, and the worst errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from seqloom.core.rows import Json
from seqloom.core.words import shorten

ROWS = 2000  # rows read, evenly spaced
LABELS = 20  # of a confusion matrix; the rarest ones are merged
ERRORS = 5

Texts = Callable[[np.ndarray], Sequence[str]]  # of the rows with these positions, in ascending order


def single(
    probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str], numbers: np.ndarray, texts: Texts
) -> Json:
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
    errors = [
        {"gold": labels[targets[n]], "predicted": labels[predicted[n]], "probability": round(float(confidence[n]), 4)}
        for n in worst
    ]
    return {
        "kind": "confusion",
        "rows": int(known.sum()),
        "unknown": int((~known).sum()),
        "labels": [labels[n] for n in kept],
        "merged": len(labels) - len(kept),
        "counts": counts.tolist(),
        "wrong": len(wrong),
        "errors": _with_texts(errors, worst, numbers, texts),
    }


def several(
    probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str], numbers: np.ndarray, texts: Texts
) -> Json:
    """Any number of labels per row: both arrays are (rows, labels); a label is predicted from 0.5 on."""
    actual, predicted = targets > 0.5, probabilities >= 0.5
    found = {"wanted": actual.sum(0), "found": predicted.sum(0), "right": (actual & predicted).sum(0)}
    often = np.argsort(-found["wanted"], kind="stable")[:LABELS]
    distance = np.abs(probabilities - actual).max(1)  # the most confident wrong decision of each row
    wrong = np.flatnonzero((actual != predicted).any(1))
    worst = wrong[np.argsort(-distance[wrong], kind="stable")][:ERRORS]

    def named(chosen: np.ndarray) -> str:
        return ", ".join(labels[n] for n in np.flatnonzero(chosen).tolist())

    errors = [
        {"gold": named(actual[n]), "predicted": named(predicted[n]), "probability": round(float(distance[n]), 4)}
        for n in worst
    ]
    return {
        "kind": "confusion",
        "rows": len(targets),
        "classes": [{"label": labels[n]} | {name: int(each[n]) for name, each in found.items()} for n in often],
        "merged": len(labels) - len(often),
        "wrong": len(wrong),
        "errors": _with_texts(errors, worst, numbers, texts),
    }


def _places(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of each label in the matrix, and the labels with a row of their own; the others share the last."""
    if len(counts) <= LABELS:
        return np.arange(len(counts)), np.arange(len(counts))
    kept = np.sort(np.argsort(-counts, kind="stable")[: LABELS - 1])
    places = np.full(len(counts), LABELS - 1)
    places[kept] = np.arange(LABELS - 1)
    return places, kept


def _with_texts(errors: list[Json], rows: np.ndarray, numbers: np.ndarray, texts: Texts) -> list[Json]:
    order = np.argsort(rows)
    found = dict(zip(rows[order].tolist(), texts(rows[order]), strict=False))
    return [
        error | {"row": int(numbers[n]) + 1, "text": shorten(found.get(n, ""))}
        for error, n in zip(errors, rows.tolist(), strict=True)
    ]
