"""The leakage probe: change everything after a point in time; no forecast made before it may change by a single bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rows = Any  # SeriesRows
Origins = tuple[np.ndarray, np.ndarray]
Forecast = Callable[[Rows, Origins], np.ndarray]  # (W, H, targets)


@dataclass(frozen=True)
class Leak:
    """Result of a probe: how many forecasts were repeated, and how many of them changed."""

    forecasts: int
    moved: int
    largest: float  # largest change of a value
    heard: bool  # changes before the origin do change forecasts: the probe is able to detect a leak

    def __str__(self) -> str:
        if self.moved:
            moved = f"{self.moved} of {self.forecasts} forecasts changed by up to {self.largest:.3g}"
            return f"leakage: {moved} when future values were changed"
        return f"leakage probe: {self.forecasts} forecasts repeated with other future values, none changed"


def probe(forecast: Forecast, rows: Rows, moments: list[int], back: int = 3, seed: int = 0) -> Leak:
    """`moments`: for each series, the time from which everything is changed; forecasts are made from there and from
    up to `back` - 1 points earlier."""
    series = np.repeat(np.arange(len(moments)), back)
    ends = np.maximum(1, np.repeat(moments, back) - np.tile(np.arange(back), len(moments)))
    before = forecast(rows, (series, ends))
    after = forecast(changed(rows, moments, seed), (series, ends))
    moved = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    past = forecast(changed(rows, [max(0, moment - back - 1) for moment in moments], seed), (series, ends))
    return Leak(
        len(ends),
        int(moved.any((1, 2)).sum()),
        float(np.nanmax(np.abs(np.where(moved, before - after, 0.0)))),
        bool((past != before).any()),
    )


def changed(rows: Rows, moments: list[int], seed: int = 0) -> Rows:
    """A copy of the rows with other values and past covariates from one moment of each series on; known future
    covariates stay, since a forecast may use them."""
    rng = np.random.default_rng(seed)
    other = copy.copy(rows)
    for name in ("values", "past"):
        parts = []
        for part, moment in zip(getattr(rows, name), moments, strict=True):
            new = np.array(part)
            new[moment:] = 10 * rng.standard_normal(new[moment:].shape) + 3
            parts.append(new)
        setattr(other, name, parts)
    return other
