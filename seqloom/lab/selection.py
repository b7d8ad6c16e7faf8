"""The luck of tuning: how much the expected score of a tuned model varies over repetitions of its search.

A search trains one model per setting and keeps the setting with the best validation score. These scores are noisy, so
another search over the same settings might keep another one, and every final run inherits that choice: more seeds do
not average it out. The variance is estimated by repeating the search on the computer: each setting gets its estimated
true score plus noise, the best one is kept, and the true scores of what was kept are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_REPEATS = 2000
_TAILS = 5.0  # degrees of freedom of the noise: seeds have outliers, and a search picks them
_PRIOR = 4.0  # weight of the noise of all models, in degrees of freedom, beside a model's own


def noise_variances(validations: Sequence[Sequence[float]]) -> list[float]:
    """The variance of a validation score over seeds, per model, from the final runs of every model.

    Few seeds say little about a variance, so each is drawn towards the mean of all models."""
    freedoms = [max(0, len(values) - 1) for values in validations]
    own = [float(np.var(values, ddof=1)) if len(values) > 1 else 0.0 for values in validations]
    if not sum(freedoms):
        return own
    common = sum(f * v for f, v in zip(freedoms, own, strict=True)) / sum(freedoms)
    return [(f * v + _PRIOR * common) / (f + _PRIOR) for f, v in zip(freedoms, own, strict=True)]


def tuning_variances(trials: Sequence[Sequence[float]], noises: Sequence[float], lower: bool) -> list[float]:
    """Per model, from the validation scores of its finished trials and the variance of one of them over seeds.

    A search whose winner was lucky looks as if nothing else could have won, so each variance is at least the mean of
    all models that were tuned."""
    own = [_tuning_variance(scores, noise, lower) for scores, noise in zip(trials, noises, strict=True)]
    tuned = [len(scores) > 1 for scores in trials]
    common = sum(own) / max(1, sum(tuned))
    return [max(found, common) if searched else 0.0 for found, searched in zip(own, tuned, strict=True)]


def _tuning_variance(trials: Sequence[float], noise: float, lower: bool) -> float:
    scores = np.asarray(trials, float) * (1.0 if lower else -1.0)
    scores = scores[np.isfinite(scores)]
    if len(scores) < 2 or noise <= 0:
        return 0.0
    true = _shrunk(scores, noise)
    draws = np.random.default_rng(0).standard_t(_TAILS, (_REPEATS, len(scores)))
    kept = true[np.argmin(true + np.sqrt(noise) * draws, axis=1)]
    return float(kept.var())


def _shrunk(scores: np.ndarray, noise: float) -> np.ndarray:
    """Estimates of the true scores. Only settings that could be the best count: one that is far behind would make all
    others look alike or all different."""
    near = scores[scores <= scores.min() + 4 * np.sqrt(noise)]
    between = max(0.0, float(near.var(ddof=1)) - noise) if len(near) > 1 else 0.0
    middle = float(near.mean())
    found: np.ndarray = middle + between / (between + noise) * (scores - middle)
    found[scores > scores.min() + 4 * np.sqrt(noise)] = np.inf  # never kept
    return found
