"""Scales on which a bounded score can vary freely, so that no interval leaves what is possible.

A score between two bounds (accuracy, BLEU) is put on the logit scale, one with a lower bound only (a loss) on the
logarithmic scale; a score without bounds stays as it is.
"""

from __future__ import annotations

import math

Bounds = tuple[float | None, float | None]


def interval_on_scale(mean: float, reach: float, bounds: Bounds) -> tuple[float, float]:
    """The interval mean -/+ reach, by the delta method: symmetric on the scale of the score, and inside its bounds."""
    low, high = bounds
    if reach <= 0 or (low is None and high is None):
        return mean - reach, mean + reach
    if low is not None and high is not None:
        return _logit_interval(mean, reach, low, high)
    if low is not None:
        return _log_interval(mean - low, reach, low)
    assert high is not None
    below, above = _log_interval(high - mean, reach, 0.0)
    return high - above, high - below


def _logit_interval(mean: float, reach: float, low: float, high: float) -> tuple[float, float]:
    share = (mean - low) / (high - low)
    if not 0 < share < 1:
        return max(low, mean - reach), min(high, mean + reach)
    middle, reach = math.log(share / (1 - share)), reach / ((high - low) * share * (1 - share))
    ends = (_sigmoid(middle - reach), _sigmoid(middle + reach))
    return low + ends[0] * (high - low), low + ends[1] * (high - low)


def _log_interval(above: float, reach: float, low: float) -> tuple[float, float]:
    if above <= 0:
        return low, low + above + reach
    factor = math.exp(min(reach / above, 700.0))
    return low + above / factor, low + above * factor


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(max(x, -700.0)) / (1 + math.exp(max(x, -700.0)))
