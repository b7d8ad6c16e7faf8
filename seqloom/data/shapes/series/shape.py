"""Numeric series, cut in time and scaled by what the training part says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.series.calendar import calendar_names
from seqloom.data.shapes.series.reading import LINES, SeriesSource, open_series
from seqloom.data.shapes.series.rows import SeriesRows
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.split import open_parts, scale_of
from seqloom.data.shapes.shape import Material


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
