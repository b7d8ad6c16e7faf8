"""Classification scores: accuracy, F1 per class and averaged, the confusion matrix, calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.batch import IGNORE
from seqloom.core.rows import Json

MOST_CLASSES = 50  # above which no confusion matrix is kept
_BINS = 15


def judge(probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str]) -> tuple[Json, np.ndarray]:
    """All scores, and whether each row is correct.

    `targets`: class numbers (rows,), IGNORE for a label unknown to training, which counts as wrong and is excluded from
    the loss; or zeros and ones (rows, labels) if a row may have several labels.
    """
    tiny = np.finfo(np.float64).tiny
    if targets.ndim == 2:
        real = targets > 0.5
        nats = -np.log(np.maximum(np.where(real, probabilities, 1 - probabilities), tiny)).sum(1)
        scores, correct = _several(probabilities, real, labels), ((probabilities >= 0.5) == real).all(1)
    else:
        known = targets != IGNORE
        nats = -np.log(np.maximum(probabilities[known, targets[known]], tiny))
        scores = _single(probabilities, np.where(known, targets, -1), labels)
        correct = probabilities.argmax(1) == targets
    return {"loss": float(nats.mean()) if len(nats) else 0.0} | scores, correct


def fit_temperature(logits: Tensor, targets: Tensor) -> float:
    """The temperature, a divisor of all logits, that minimises the loss and so calibrates the probabilities."""
    logits = logits.double()

    def loss(temperature: float) -> float:
        if targets.dim() == 2:
            return float(F.binary_cross_entropy_with_logits(logits / temperature, targets.double()))
        return float(F.cross_entropy(logits / temperature, targets, ignore_index=IGNORE))

    if targets.dim() == 1 and not bool((targets != IGNORE).any()):
        return 1.0
    low, high = math.log(0.05), math.log(20.0)
    return math.exp(minimize_scalar(lambda t: loss(math.exp(t)), bounds=(low, high), method="bounded").x)


def _single(probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str]) -> Json:
    """One label per row: `probabilities` (rows, classes); target -1: a label unknown to training."""
    predicted = probabilities.argmax(1)
    correct = predicted == targets
    known = targets >= 0
    matrix = np.zeros((len(labels), len(labels)), np.int64)  # target, prediction
    np.add.at(matrix, (targets[known], predicted[known]), 1)
    unseen = np.bincount(predicted[~known], minlength=len(labels))  # predictions for labels unknown to training
    table, macro = _table(matrix.diagonal(), matrix.sum(0) + unseen, matrix.sum(1), labels)
    scores = {
        "accuracy": float(correct.mean()),
        "macro_f1": macro,
        "calibration_error": calibration_error(probabilities.max(1), correct),
        "classes": table,
    }
    return scores | ({"confusion": matrix.tolist()} if len(labels) <= MOST_CLASSES else {})


def _several(probabilities: np.ndarray, targets: np.ndarray, labels: Sequence[str]) -> Json:
    """Any number of labels per row: both arrays are (rows, classes); a label is predicted from 0.5 on."""
    predicted = probabilities >= 0.5
    hits, all_predicted, all_targets = (predicted & targets).sum(0), predicted.sum(0), targets.sum(0)
    table, macro = _table(hits, all_predicted, all_targets, labels)
    confidence = np.where(predicted, probabilities, 1 - probabilities)
    return {
        "accuracy": float((predicted == targets).all(1).mean()),
        "micro_f1": float(2 * hits.sum() / max(1, all_predicted.sum() + all_targets.sum())),
        "macro_f1": macro,
        "calibration_error": calibration_error(confidence, predicted == targets),
        "classes": table,
    }


def calibration_error(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Expected calibration error (Guo et al. 2017): the gap between confidence and accuracy, averaged over bins."""
    confidence, correct = confidence.ravel(), correct.ravel()
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    gaps = np.abs(np.bincount(bins, confidence, _BINS) - np.bincount(bins, correct.astype(float), _BINS))
    return float(gaps.sum() / max(1, counts.sum()))


def _table(hits: np.ndarray, predicted: np.ndarray, targets: np.ndarray, labels: Sequence[str]) -> tuple[Json, float]:
    """Scores of each class, and the mean F1 of classes that occur in targets or predictions."""
    f1 = 2 * hits / np.maximum(1, predicted + targets)
    occurs = predicted + targets > 0
    table = {
        label: {
            "precision": float(hits[n] / max(1, predicted[n])),
            "recall": float(hits[n] / max(1, targets[n])),
            "f1": float(f1[n]),
            "count": int(targets[n]),
        }
        for n, label in enumerate(labels)
    }
    return table, float(f1[occurs].mean()) if occurs.any() else 0.0
