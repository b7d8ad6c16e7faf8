"""Numeric series, scaled by the statistics of the training set."""

from __future__ import annotations

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.shapes.series.calendar import calendar_features
from seqloom.data.shapes.series.categories import expanded
from seqloom.data.shapes.series.clock import Clock
from seqloom.data.shapes.series.reading import Series, SeriesSource
from seqloom.data.shapes.series.scale import SeriesScale


class SeriesRows:
    """The scaled values of each series, from its first point to the last of this split, and its known covariates.

    Points from `begins` on are scored; those before are history only. NaN is missing; but a missing known covariate is
    0, the mean of the training set.
    """

    def __init__(self, source: SeriesSource, scale: SeriesScale) -> None:
        source = source if source.levels else expanded(source, scale.levels)
        self.origin, self.scale = source, scale
        self.clock = Clock(scale.frequency, scale.step, scale.month_end)
        self._calendar = [name.removesuffix("_sin") for name in scale.calendar[::2]]
        if source.clock and not source.clock.same(self.clock):
            raise UserError(f"{source.name}: frequency {source.clock}, but that of training is {self.clock}")
        if any((one.times.dtype.kind == "M") != (self.clock.unit != "number") for one in source.series):
            raise UserError(
                f"{source.name}: dates and plain numbers do not go together; training had frequency {self.clock}"
            )
        self.names = [one.name for one in source.series]
        self.begins = list(source.begins)
        self.times = [one.times[:end] for one, end in zip(source.series, source.ends, strict=True)]
        self.values = self._scaled("targets")
        self.past = self._scaled("past")
        places = source.places(scale.columns["known"])
        self.known = [self._known(one, places) for one in source.series]
        self.lengths = np.array(source.ends) - np.array(source.begins)
        self.bytes = source.bytes

    def __len__(self) -> int:
        return len(self.names)

    @property
    def tokens(self) -> int:
        """Points of this split, in all series."""
        return int(self.lengths.sum())

    def future_times(self, series: int, steps: int) -> np.ndarray:
        """The times after the last point."""
        return self.clock.after(self.times[series][-1], steps)

    def future_known(self, series: int, steps: int) -> np.ndarray:
        """(steps, known) after the last point: the calendar has no end, the columns of a file have."""
        end = len(self.times[series])
        there = self.known[series][end : end + steps]
        if len(there) == steps:
            return there
        if columns := self.scale.columns["known"]:
            raise UserError(
                f"{self.origin.name}: {self.origin.series[series].shown} has {', '.join(columns)} for "
                f"{len(there):,} steps after its last value, but {steps:,} are needed; add lines with them and "
                "with empty targets"
            )
        return calendar_features(self.future_times(series, steps), self._calendar)

    def _scaled(self, part: str) -> list[np.ndarray]:
        places = self.origin.places(self.scale.columns[part])
        ends = zip(self.origin.series, self.origin.ends, strict=True)
        return [self.scale.apply(one.values[:end, places], part) for one, end in ends]

    def _known(self, one: Series, places: list[int]) -> np.ndarray:
        columns = np.nan_to_num(self.scale.apply(one.values[:, places], "known"))
        return np.concatenate((columns, calendar_features(one.times, self._calendar)), axis=1)
