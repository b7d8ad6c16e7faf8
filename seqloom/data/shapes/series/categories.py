"""Columns of texts as covariates: each level that occurs in the training set becomes a column of zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.shapes.series.reading import SeriesSource

MOST = 50  # levels of a column

Levels = Mapping[str, list[str]]


def levels_of(train: SeriesSource) -> dict[str, list[str]]:
    """The texts of each column of texts that occur in the training set, sorted."""
    found = {}
    for column, texts in train.texts.items():
        codes = train.points_of([column])[:, 0]
        levels = sorted(texts[int(code)] for code in np.unique(codes[~np.isnan(codes)]))
        if len(levels) > MOST:
            raise UserError(
                f"{train.name}: column {column!r} has {len(levels):,} different texts in the training set, but at most "
                f"{MOST} can be a covariate; leave it out, or group them"
            )
        if not levels:
            raise UserError(f"{train.name}: column {quoted(column)} has no values in the training set; leave it out")
        found[column] = levels
    return found


def expanded(source: SeriesSource, levels: Levels) -> SeriesSource:
    """Each column of texts as one column for each level, called `column=level`: 1 where it is that text, 0 where it is
    another, also one not among the levels; missing where there is none."""
    chosen = {column: levels[column] for column in source.texts if column in levels}
    if lacking := [column for column in levels if column not in source.texts]:
        shown = "a column of numbers" if lacking[0] in source.columns else "not there"
        raise UserError(f"{source.name}: column {quoted(lacking[0])} must have texts, as in training, but is {shown}")
    if not source.texts:
        return source
    names = {column: [f"{column}={level}" for level in found] for column, found in chosen.items()}
    columns = [name for column in source.columns for name in names.get(column, [column])]
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise UserError(f"{source.name}: two columns would be named {quoted(twice[0])}; rename one")
    series = []
    for one in source.series:
        parts = [
            _flags(one.values[:, n], source.texts[column], chosen[column])
            if column in chosen
            else one.values[:, n : n + 1]
            for n, column in enumerate(source.columns)
        ]
        series.append(replace(one, values=np.concatenate(parts, axis=1)))
    past, known = (
        [name for column in role for name in names.get(column, [column])] for role in (source.past, source.known)
    )
    return replace(source, columns=columns, past=past, known=known, series=series, texts={}, levels=dict(chosen))


def recoded(source: SeriesSource, texts: Mapping[str, list[str]]) -> SeriesSource:
    """The same texts with the codes of another file, followed by those that only this one has."""
    if not source.texts:
        return source
    merged = {column: list(dict.fromkeys([*texts.get(column, []), *own])) for column, own in source.texts.items()}
    series = []
    for one in source.series:
        values = one.values.copy()
        for column, own in source.texts.items():
            place = source.columns.index(column)
            codes = np.array([*(merged[column].index(text) for text in own), np.nan])
            values[:, place] = codes[np.where(np.isnan(values[:, place]), len(own), values[:, place]).astype(int)]
        series.append(replace(one, values=values))
    return replace(source, series=series, texts=merged)


def _flags(codes: np.ndarray, texts: list[str], levels: list[str]) -> np.ndarray:
    place = {text: n for n, text in enumerate(texts)}
    flags = np.stack([codes == place.get(level, -1) for level in levels], axis=1).astype(np.float64)
    flags[np.isnan(codes)] = np.nan
    return flags
