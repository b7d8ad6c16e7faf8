"""Logistic regression by scikit-learn, which is imported when something is fitted; the result is plain arrays.

How strongly weights are penalised (C, the inverse) is chosen among a few values by cross-validation on the training
rows: the one whose held-out rows are the most probable. One value would not do: rows of few words that decide alone
want a weak penalty, rows with unreliable labels a strong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from seqloom.core.batch import IGNORE

STRENGTHS = (1.0, 5.0, 25.0)  # values of C to choose from
USUAL = 10.0  # C where choosing would take too long
MOST_TO_CHOOSE = 50_000  # rows, times labels where each has a regression of its own
_FOLDS = 3
_ROUGH, _FINE = 1e-2, 1e-3  # tolerances of the solver: to choose, and for the result


class Logistic(NamedTuple):
    """logits = features @ weight + bias; `strength`: the C that was chosen."""

    weight: np.ndarray  # (F, K)
    bias: np.ndarray  # (K,)
    strength: float


def fit_logistic(
    features: Any, targets: np.ndarray, labels: int, balanced: bool = False, strengths: Sequence[float] = STRENGTHS
) -> Logistic:
    """Features (rows, F), sparse or not; targets (rows,) label numbers (IGNORE: left out), or (rows, K) zeros and ones.

    `balanced`: rows of rare labels weigh more, so that all labels weigh the same; `strengths`: values of C to choose
    from.
    """
    if targets.ndim == 1:
        known = targets != IGNORE
        features, targets = features[known], targets[known]
    strength = _choose(features, targets, labels, balanced, strengths)
    return Logistic(*_solve(features, targets, labels, balanced, strength, _FINE), strength)


def _choose(features: Any, targets: np.ndarray, labels: int, balanced: bool, strengths: Sequence[float]) -> float:
    rows = len(targets)
    if rows * (labels if targets.ndim == 2 else 1) > MOST_TO_CHOOSE or rows < 2 * _FOLDS:
        return USUAL if strengths is STRENGTHS else strengths[len(strengths) // 2]
    fold = np.random.default_rng(0).permutation(rows) % _FOLDS
    losses = []
    for strength in strengths:
        loss = 0.0
        for held in range(_FOLDS):
            inside, outside = fold != held, fold == held
            weight, bias = _solve(features[inside], targets[inside], labels, balanced, strength, _ROUGH)
            loss += _loss(features[outside] @ weight + bias, targets[outside])
        losses.append(loss)
    return strengths[int(np.argmin(losses))]


def _solve(
    features: Any, targets: np.ndarray, labels: int, balanced: bool, strength: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (F, K) and biases (K,)."""
    if targets.ndim == 2:
        each = [_separate(features, targets[:, n] > 0.5, balanced, strength, tolerance) for n in range(labels)]
        return np.stack([weight for weight, _ in each], axis=1), np.array([bias for _, bias in each])
    weight, bias = np.zeros((features.shape[1], labels)), np.zeros(labels)
    found = np.unique(targets)
    if len(found) == 2:
        one, bias_of_one = _separate(features, targets == found[1], balanced, strength, tolerance)
        weight[:, found[1]], bias[found] = one, (0.0, bias_of_one)
    elif len(found) > 2:
        model = _regression(features, balanced, strength, tolerance).fit(features, targets)
        weight[:, found], bias[found] = model.coef_.T, model.intercept_
    absent = np.setdiff1d(np.arange(labels), found)  # in cross-validation: as improbable as half a row makes them
    bias[absent] = bias[found].min(initial=0.0) + _odds(0, len(targets))
    return weight, bias


def _separate(
    features: Any, real: np.ndarray, balanced: bool, strength: float, tolerance: float
) -> tuple[np.ndarray, float]:
    """One label against its absence; constant if all rows or none have it."""
    if real.all() or not real.any():
        return np.zeros(features.shape[1]), _odds(int(real.sum()), int((~real).sum()))
    model = _regression(features, balanced, strength, tolerance).fit(features, real)
    return model.coef_[0], float(model.intercept_[0])


def _regression(features: Any, balanced: bool, strength: float, tolerance: float) -> Any:
    """On sparse features saga is several times faster than other solvers, with the same result; on dense ones lbfgs."""
    from sklearn.linear_model import LogisticRegression

    solver = "lbfgs" if isinstance(features, np.ndarray) else "saga"
    how = {"solver": solver, "max_iter": 200, "tol": tolerance, "random_state": 0}
    return LogisticRegression(C=strength, class_weight="balanced" if balanced else None, **how)


def _odds(yes: int, no: int) -> float:
    """Log-odds, with half a row added on both sides."""
    return float(np.log((yes + 0.5) / (no + 0.5)))


def _loss(logits: np.ndarray, targets: np.ndarray) -> float:
    """Negative log-likelihood, in nats."""
    if targets.ndim == 2:
        return float(np.logaddexp(0, np.where(targets > 0.5, -logits, logits)).sum())
    highest = logits.max(1, keepdims=True)
    total = np.log(np.exp(logits - highest).sum(1)) + highest[:, 0]
    return float((total - logits[np.arange(len(logits)), targets]).sum())
