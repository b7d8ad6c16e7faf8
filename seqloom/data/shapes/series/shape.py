"""Numeric series, split in time and scaled by the statistics of the training set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.findings import Finding
from seqloom.data.memory import Layout
from seqloom.data.shapes.series.calendar import calendar_names
from seqloom.data.shapes.series.doctor import examine_series
from seqloom.data.shapes.series.elsewhere import columns_elsewhere, renamed
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource, open_series
from seqloom.data.shapes.series.roles import resolved, roles_of
from seqloom.data.shapes.series.rows import SeriesRows
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.seasons import named
from seqloom.data.shapes.series.split import clock_of, latest, open_parts, scale_of
from seqloom.data.shapes.shape import Shape
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import NoTokenizer


class NumericSeries(Shape[Options, NoTokenizer, SeriesSource, SeriesRows, SeriesScale]):
    options = Options
    counted = "points"
    drawn = False
    columns = {"time": "time", "series": "series", "targets": "targets", "past": "past", "known": "known"}

    def layout(self, options: Mapping[str, object], vocabulary: SeriesScale | None = None) -> Layout:
        return Layout(vocabulary.targets if vocabulary else (), series=True)

    def open(self, spec: str, options: Options) -> SeriesSource:
        return open_series(spec, options)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        """What the file shows of its layout and of the roles of columns, beside the options `given`."""
        return roles_of(spec, given)

    def lacks(self, spec: str, names: Mapping[str, object]) -> set[str]:
        return set()  # `elsewhere` looks for itself: an option may name several columns

    def elsewhere(
        self, spec: str, trained: Options, given: Mapping[str, object], vocabulary: SeriesScale, predict: bool = False
    ) -> dict[str, object]:
        return columns_elsewhere(spec, trained, given, vocabulary)

    def open_parts(self, options: Options) -> dict[str, SeriesSource]:
        options = resolved(options.train, options)  # what the first file shows holds for the others
        given = {name: self.open(spec, options) for name, spec in options.held_out.items()}
        parts = open_parts(self.open(options.train, options), options, given)
        if options.examples:
            parts["train"] = self.draw(parts["train"], options.examples, options.draw)
        return parts

    def examine(self, options: Options) -> list[Finding]:
        return examine_series(options)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        """A row per series: its name, and `rows(scale)`, which returns it as SeriesRows, all of it history."""
        for n, one in enumerate(self.open(spec, options).each(), 1):
            yield {"line": n, "series": one.series[0].name, "rows": partial(_history, one)}

    def split(self, part: SeriesSource, valid: float, test: float) -> dict[str, SeriesSource]:
        how = Options.model_validate({"train": part.name, "valid_fraction": valid, "test_fraction": test})
        return open_parts(part, how, {})

    def draw(self, part: SeriesSource, amount: int | float, draw: int) -> SeriesSource:
        if amount >= 1:
            raise UserError(
                f"data.examples={amount}: series are split in time, not drawn; use data.train_points, or a share below "
                "1 for the latest points"
            )
        return latest(part, amount)

    def make_vocabulary(self, options: NoTokenizer, train: SeriesSource, known: Tokenizer | None = None) -> SeriesScale:
        columns = {"targets": train.targets, "past": train.past, "known": train.known}
        clock = clock_of(train)
        values = np.isnan(train.points_of(train.columns)).any(0)
        return SeriesScale(
            columns,
            {role: scale_of(train, names) for role, names in columns.items()},
            calendar=calendar_names(train.calendar),
            frequency=clock.unit,
            step=clock.step,
            month_end=clock.month_end,
            season=train.season,
            seasons=train.seasons,
            method=train.scale,
            levels=train.levels,
            missing=[name for name, gone in zip(train.columns, values.tolist(), strict=True) if gone],
        )

    def load_vocabulary(self, folder: Path) -> SeriesScale:
        return SeriesScale.load(folder)

    def prepare(
        self, part: SeriesSource, vocabulary: SeriesScale, talk: Reporter | None = None, name: str = ""
    ) -> SeriesRows:
        if talk and part.facts.apart:
            talk.say(f"{name}: {part.facts.apart:,} series begin too long after training to use it as history")
        return SeriesRows(renamed(part, vocabulary), vocabulary)

    def check(self, rows: Mapping[str, SeriesRows], vocabulary: SeriesScale) -> None:
        train = rows["train"]
        if len(train.origin.constant()) == len(train):
            raise UserError(f"{train.origin.name}: no target changes in the training set; there is nothing to learn")

    def describe(self, train: SeriesRows, vocabulary: SeriesScale) -> str:
        source, facts = train.origin, train.origin.facts
        size = f"{len(train):,} series, {train.tokens:,} training points of {len(vocabulary.targets)} targets"
        missing = sum(int(np.isnan(values).sum()) for values in train.values)
        share = (
            f"{missing / (train.tokens * len(vocabulary.targets)):.1%} of them missing" if missing else "none missing"
        )
        found = [size, share, f"every {train.clock}" if train.clock.unit != "number" else f"by {train.clock}"]
        found.append(named(source.given or ()))
        if facts.gaps:
            found.append(f"{facts.gaps:,} gaps filled with {facts.filled:,} missing rows")
        if still := len(source.constant()):
            found.append(f"{still:,} constant")
        if facts.unused:
            found.append(f"{facts.unused:,} points after the last split not used")
        if facts.empty:
            found.append(f"{facts.empty:,} empty series left out")
        if facts.left_out:
            found.append(f"non-numeric columns left out: {', '.join(facts.left_out)}")
        return ", ".join(found)


def _history(source: SeriesSource, scale: SeriesScale) -> SeriesRows:
    """All points up to the last of the run's targets; the file may have other numeric columns."""
    source = renamed(source, scale)
    there = ~np.isnan(source.series[0].values[:, source.places(scale.targets)]).all(1)
    if not there.any():
        raise UserError(f"{source.name}: {source.series[0].shown} has no values of {', '.join(scale.targets)}")
    end = int(np.flatnonzero(there)[-1]) + 1
    return SeriesRows(replace(source, begins=[end], ends=[end]), scale)


SHAPE = NumericSeries()
