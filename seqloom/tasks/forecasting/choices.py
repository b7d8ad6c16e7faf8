"""What a forecaster leaves open, chosen from the training part by rules that are the same for all data.

The rules were picked on nine public sets (ETTh1, ETTh2, ETTm1, M4 hourly and weekly, exchange rates, influenza, airline
passengers, sunspots), each judged by the rule that was best on the eight others; docs/forecasting.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from seqloom.core.choice import Choice
from seqloom.data.shapes.series.reading import SeriesSource

_LONGEST_HORIZON, _USUAL_HORIZON = 96, 24
_LONGEST_CONTEXT = 512
_SEASONS, _HORIZONS = 3, 4  # of context
_EXAMPLES = 4  # training windows per point of context, at least: a linear map has one weight per point
_DIFFERENT = 3.0  # ratio of large to small spreads from which series are scaled one by one
_WINDOWS = 64_000  # read in training, about a thousand steps of 64: minutes on two cores
_FEW = 1_000  # windows below which batches are small
_WIDE = 8  # numbers per step from which vectors are wider
_BUDGETS = ("train.steps", "train.tokens", "train.seconds", "train.epochs")


def choose(source: SeriesSource, given: Mapping[str, object]) -> list[Choice]:
    """`source`: the training part; `given`: what the user has set, by path, which is left alone; what depends on it
    follows it."""
    rules = _Rules(source, given)
    found = [rules.horizon(), rules.context(), rules.window_scale(), rules.channels(), rules.intervals()]
    found += [*rules.error(), *rules.training()]
    return [choice for choice in found if choice is not None and choice.path not in given]


class _Rules:
    def __init__(self, source: SeriesSource, given: Mapping[str, object]) -> None:
        self.source, self.given = source, given
        self.lengths = np.array(source.ends) - np.array(source.begins)
        self.length = int(np.median(self.lengths)) if len(self.lengths) else 1
        self.seasons = [int(season) for season in source.seasons if season > 1]

    def horizon(self) -> Choice:
        most = max(1, self.length // 10)
        if not self.seasons:
            value, reason = _USUAL_HORIZON, "no season was found"
        else:
            value, reason = min(self.seasons[0], _LONGEST_HORIZON), f"one season of {self.seasons[0]:,} points"
            if value < self.seasons[0]:
                reason = f"a season of {self.seasons[0]:,} points, at most {_LONGEST_HORIZON}"
        if value > most:
            value, reason = most, f"a tenth of the {self.length:,} training points of a series"
        return Choice("task.horizon", value, reason)

    def context(self) -> Choice:
        horizon, season = self._horizon, self._longest_season
        by_season, by_horizon = _SEASONS * season, _HORIZONS * horizon
        value, reason = by_horizon, f"{_HORIZONS} times the horizon of {horizon:,}"
        if by_season > by_horizon:
            value, reason = by_season, f"{_SEASONS} seasons of {season:,} points"
        if value > _LONGEST_CONTEXT:
            value, reason = _LONGEST_CONTEXT, f"{reason}, at most {_LONGEST_CONTEXT}"
        if self._windows(value) < _EXAMPLES * value:
            value = self._affordable(value)
            reason = f"{self._windows(value):,} training windows are too few for a longer one"
        return Choice("task.context", value, reason)

    def window_scale(self) -> Choice | None:
        """Not where positions of the history have targets, or values are binned on the scale of the training set."""
        if self.given.get("task.asked") == "all" or self.given.get("task.output") == "bins":
            return None
        if self._differ:
            return Choice("task.window_scale", "standard", self._differ)
        return Choice("task.window_scale", "last", "levels drift, and forecasts start from the last value")

    def channels(self) -> Choice | None:
        if (targets := len(self.source.targets)) == 1:
            return None
        return Choice("task.channels", "apart", f"{targets} targets, each an example for one shared model")

    def error(self) -> list[Choice]:
        if not self._differ:
            return []
        found = [Choice("task.metric", "mase", f"{self._differ}; every one counts the same")]
        if self.given.get("task.output", "point") == "point":
            found.append(Choice("task.error", "absolute", f"{self._differ}; large errors must not decide"))
        return found

    def intervals(self) -> Choice:
        return Choice("task.intervals", "conformal", "errors on the validation set tell how wide they must be")

    def training(self) -> list[Choice]:
        windows = max(1, self._windows(int(str(self.given.get("task.context", self.context().value)))))
        found = [Choice("train.batch", 16 if windows < _FEW else 64, f"{windows:,} training windows")]
        inputs = len(self.source.past) + len(self.source.known) + 1
        inputs += len(self.source.targets) - 1 if self.given.get("task.channels") == "joint" else 0
        wide = inputs > _WIDE
        found.append(Choice("model.width", 128 if wide else 64, f"{inputs} number{'s' * (inputs > 1)} per step"))
        if not any(path in self.given for path in _BUDGETS):
            epochs = int(np.clip(round(_WINDOWS / windows), 1, 100))
            found.append(Choice("train.epochs", epochs, f"about {_WINDOWS:,} windows are read"))
            found.append(Choice("train.patience", 3, "three validations without progress are enough"))
        return found

    @property
    def _horizon(self) -> int:
        return int(str(self.given.get("task.horizon", self.horizon().value)))

    @property
    def _longest_season(self) -> int:
        """The longest season that fits into the longest context as often as it should be seen."""
        return max((int(season) for season in self.seasons if _SEASONS * season <= _LONGEST_CONTEXT), default=1)

    def _windows(self, context: int) -> int:
        """Training windows with a full context and a full horizon, of all targets."""
        each: np.ndarray = np.maximum(0, self.lengths - context - self._horizon + 1)
        return int(each.sum()) * len(self.source.targets)

    def _affordable(self, most: int) -> int:
        """The longest context with enough windows: whole seasons, if one fits."""
        found = next((n for n in range(most, 1, -1) if self._windows(n) >= _EXAMPLES * n), 1)
        for season in sorted(self.seasons, reverse=True):
            if season <= found:
                return found // season * season
        return found

    @cached_property
    def _differ(self) -> str:
        """Why series must be scaled one by one; empty: they need not."""
        if len(self.lengths) < 2:
            return ""
        places = self.source.places(self.source.targets)
        parts = zip(self.source.series, self.source.begins, self.source.ends, strict=True)
        ratios = [_ratio(spreads) for spreads in np.array([_spreads(one, a, b, places) for one, a, b in parts]).T]
        return f"series differ {max(ratios):,.0f}-fold in spread" if max(ratios) > _DIFFERENT else ""


def _spreads(one: Any, begin: int, end: int, places: list[int]) -> np.ndarray:
    """Standard deviation of each target of a series, 0 where it has no value."""
    values = one.values[begin:end, places]
    there = np.isfinite(values)
    counts = np.maximum(1, there.sum(0))
    mean = np.where(there, values, 0.0).sum(0) / counts
    found: np.ndarray = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum(0) / counts)
    return found


def _ratio(spreads: np.ndarray) -> float:
    """Between the spreads of series that are larger and smaller than four fifths of the others; constant ones aside."""
    varying = spreads[spreads > 0]
    if len(varying) < 2:
        return 1.0
    low, high = np.quantile(varying, (0.1, 0.9))
    return float(high / low)
