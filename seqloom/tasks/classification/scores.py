"""Scores of labels: accuracy, F1 of every class and their mean, the confusion matrix, calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.batch import IGNORE

MOST_CLASSES = 50  # of which a whole confusion matrix is kept
_BINS = 15


def judge(chances: np.ndarray, wanted: np.ndarray, labels: Sequence[str]) -> tuple[dict[str, Any], np.ndarray]:
    """All scores, and for each row whether it is right.

    `wanted`: numbers (rows,), IGNORE for a label that training never saw, always wrong and without a loss; or zeros and
    ones (rows, labels), when a row may have several.
    """
    tiny = np.finfo(np.float64).tiny
    if wanted.ndim == 2:
        real = wanted > 0.5
        nats = -np.log(np.maximum(np.where(real, chances, 1 - chances), tiny)).sum(1)
        scores, right = _several(chances, real, labels), ((chances >= 0.5) == real).all(1)
    else:
        known = wanted != IGNORE
        nats = -np.log(np.maximum(chances[known, wanted[known]], tiny))
        scores, right = _single(chances, np.where(known, wanted, -1), labels), chances.argmax(1) == wanted
    return {"loss": float(nats.mean()) if len(nats) else 0.0} | scores, right


def fit_temperature(scores: Tensor, wanted: Tensor) -> float:
    """The one number that scores are divided by to make chances as right as they say, by least loss."""
    scores = scores.double()

    def loss(temperature: float) -> float:
        if wanted.dim() == 2:
            return float(F.binary_cross_entropy_with_logits(scores / temperature, wanted.double()))
        return float(F.cross_entropy(scores / temperature, wanted, ignore_index=IGNORE))

    if wanted.dim() == 1 and not bool((wanted != IGNORE).any()):
        return 1.0
    low, high = math.log(0.05), math.log(20.0)
    return math.exp(minimize_scalar(lambda t: loss(math.exp(t)), bounds=(low, high), method="bounded").x)


def _single(chances: np.ndarray, wanted: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Of rows with one label each: chances (rows, classes); wanted -1: a label that training never saw."""
    guessed = chances.argmax(1)
    right = guessed == wanted
    known = wanted >= 0
    matrix = np.zeros((len(labels), len(labels)), np.int64)  # wanted, guessed
    np.add.at(matrix, (wanted[known], guessed[known]), 1)
    strange = np.bincount(guessed[~known], minlength=len(labels))  # guesses for labels that it cannot know
    table, macro = _table(matrix.diagonal(), matrix.sum(0) + strange, matrix.sum(1), labels)
    scores = {
        "accuracy": float(right.mean()),
        "macro_f1": macro,
        "calibration_error": calibration_error(chances.max(1), right),
        "classes": table,
    }
    return scores | ({"confusion": matrix.tolist()} if len(labels) <= MOST_CLASSES else {})


def _several(chances: np.ndarray, wanted: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Of rows with any number of labels: chances and wanted (rows, classes); a label is given from one half on."""
    given = chances >= 0.5
    hits, all_given, all_wanted = (given & wanted).sum(0), given.sum(0), wanted.sum(0)
    table, macro = _table(hits, all_given, all_wanted, labels)
    return {
        "accuracy": float((given == wanted).all(1).mean()),
        "micro_f1": float(2 * hits.sum() / max(1, all_given.sum() + all_wanted.sum())),
        "macro_f1": macro,
        "calibration_error": calibration_error(np.where(given, chances, 1 - chances), given == wanted),
        "classes": table,
    }  # fmt: skip


def calibration_error(sure: np.ndarray, right: np.ndarray) -> float:
    """How far what it says of its own certainty is from how often it is right: the mean over bins (Guo et al. 2017)."""
    sure, right = sure.ravel(), right.ravel()
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    gaps = np.abs(np.bincount(bins, sure, _BINS) - np.bincount(bins, right.astype(float), _BINS))
    return float(gaps.sum() / max(1, counts.sum()))


def _table(
    hits: np.ndarray, given: np.ndarray, wanted: np.ndarray, labels: Sequence[str]
) -> tuple[dict[str, Any], float]:
    """Of each class, and the mean F1 of those that were wanted or given at all."""
    f1 = 2 * hits / np.maximum(1, given + wanted)
    there = given + wanted > 0
    table = {
        label: {
            "precision": float(hits[n] / max(1, given[n])),
            "recall": float(hits[n] / max(1, wanted[n])),
            "f1": float(f1[n]),
            "count": int(wanted[n]),
        }
        for n, label in enumerate(labels)
    }
    return table, float(f1[there].mean()) if there.any() else 0.0
