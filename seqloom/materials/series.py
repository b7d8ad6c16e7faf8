"""Numeric series, cut in time and scaled by what the training part says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.run import DataConfig
from seqloom.core.task import Row
from seqloom.data.clock import Clock
from seqloom.data.moments import calendar_features, calendar_names
from seqloom.data.series import LINES, Series, SeriesSource, open_series
from seqloom.data.series_split import open_parts, scale_of
from seqloom.materials.material import Material
from seqloom.tokenizers.series import SeriesScale
from seqloom.train.progress import Reporter


class SeriesRows:
    """Of each series, scaled: its values from the first point to the last of this part, and what is known beside.

    What is scored are the points from `begins`; what stands before them is history only. NaN is missing; but a known
    column that is missing is 0, the mean of the training part.
    """

    def __init__(self, source: SeriesSource, scale: SeriesScale) -> None:
        self.origin, self.scale = source, scale
        self.clock = Clock(scale.frequency, scale.step, scale.month_end)
        self._calendar = [name.removesuffix("_sin") for name in scale.calendar[::2]]
        if source.clock and not source.clock.same(self.clock):
            raise UserError(f"{source.name}: a clock of {source.clock}, where training had one of {self.clock}")
        if any((one.times.dtype.kind == "M") != (self.clock.unit != "number") for one in source.series):
            raise UserError(
                f"{source.name}: dates and numbers do not go together; training had a clock of {self.clock}"
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
        """Points of this part, in all series."""
        return int(self.lengths.sum())

    def future_times(self, series: int, steps: int) -> np.ndarray:
        """The times after the last point."""
        return self.clock.after(self.times[series][-1], steps)

    def future_known(self, series: int, steps: int) -> np.ndarray:
        """(steps, known) after the last point: the calendar goes on for ever, the columns of a file end with it."""
        end = len(self.times[series])
        there = self.known[series][end : end + steps]
        if len(there) == steps:
            return there
        if columns := self.scale.columns["known"]:
            raise UserError(
                f"{self.origin.name}: {self.origin.series[series].shown} has {', '.join(columns)} for "
                f"{len(there):,} steps after its last value, and {steps:,} are asked for; add lines with them, and "
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


class SeriesMaterial(Material):
    def open(self, spec: str, data: DataConfig) -> SeriesSource:
        return open_series(spec, data)

    def open_parts(self, data: DataConfig) -> dict[str, SeriesSource]:
        given = {name: spec for name, spec in (("valid", data.valid), ("test", data.test)) if spec}
        return open_parts(
            self.open(data.train, data), data, {name: self.open(spec, data) for name, spec in given.items()}
        )

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        """A row for each series: its name, and `rows(scale)`, which gives it as SeriesRows, all of it history."""
        for n, one in enumerate(self.open(spec, data).each(), 1):
            yield {"line": n, "series": one.series[0].name, "rows": partial(_history, one)}

    def split(self, part: SeriesSource, valid: float, test: float) -> dict[str, SeriesSource]:
        how = DataConfig.model_validate({"train": part.name, "valid_fraction": valid, "test_fraction": test})
        return open_parts(part, how, {})

    def make_tokenizer(self, config: Any, train: SeriesSource, known: Any = None) -> SeriesScale:
        columns = {"targets": train.targets, "past": train.past, "known": train.known}
        clock = train.clock or LINES
        values = np.isnan(train.points_of(train.columns)).any(0)
        return SeriesScale(
            columns,
            {role: scale_of(train, names) for role, names in columns.items()},
            calendar=calendar_names(train.calendar),
            frequency=clock.unit,
            step=clock.step,
            month_end=clock.month_end,
            season=train.season,
            method=train.scale,
            missing=[name for name, gone in zip(train.columns, values.tolist(), strict=True) if gone],
        )

    def load_tokenizer(self, folder: Path) -> SeriesScale:
        return SeriesScale.load(folder)

    def prepare(self, part: SeriesSource, tokenizer: SeriesScale, talk: Reporter | None = None, name: str = "") -> Any:
        if talk and part.facts.apart:
            talk.say(f"{name}: {part.facts.apart:,} series begin too long after training to have it as history")
        return SeriesRows(part, tokenizer)

    def check(self, rows: Mapping[str, SeriesRows], tokenizer: SeriesScale) -> None:
        train = rows["train"]
        if len(train.origin.constant()) == len(train):
            raise UserError(f"{train.origin.name}: nothing changes in the training part; there is nothing to learn")

    def describe(self, train: SeriesRows, tokenizer: SeriesScale) -> str:
        source, facts = train.origin, train.origin.facts
        size = f"{len(train):,} series, {train.tokens:,} training points of {len(tokenizer.targets)} targets"
        missing = sum(int(np.isnan(values).sum()) for values in train.values)
        share = (
            f"{missing / (train.tokens * len(tokenizer.targets)):.1%} of them missing" if missing else "none missing"
        )
        found = [size, share, f"every {train.clock}" if train.clock.unit != "number" else f"by {train.clock}"]
        found.append(f"season {tokenizer.season}" if tokenizer.season > 1 else "no season")
        if facts.gaps:
            found.append(f"{facts.gaps:,} gaps filled with {facts.filled:,} missing rows")
        if still := len(source.constant()):
            found.append(f"{still:,} that never change")
        if facts.unused:
            found.append(f"{facts.unused:,} points after the last part not used")
        if facts.empty:
            found.append(f"{facts.empty:,} empty series left out")
        if facts.left_out:
            found.append(f"columns without numbers left out: {', '.join(facts.left_out)}")
        return ", ".join(found)


def _history(source: SeriesSource, scale: SeriesScale) -> SeriesRows:
    """All points up to the last of what the run forecasts; there may be other columns of numbers beside."""
    there = ~np.isnan(source.series[0].values[:, source.places(scale.targets)]).all(1)
    if not there.any():
        raise UserError(f"{source.name}: {source.series[0].shown} has no value of {', '.join(scale.targets)}")
    end = int(np.flatnonzero(there)[-1]) + 1
    return SeriesRows(replace(source, begins=[end], ends=[end]), scale)


MATERIAL = SeriesMaterial()
