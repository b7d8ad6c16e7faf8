"""The leakage probe: change what comes after a moment, and no forecast made before it may move, not by one bit."""

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
    """What a probe found: how many forecasts were made again, and how many of them had moved."""

    forecasts: int
    moved: int
    largest: float  # change
    heard: bool  # a change before the origin does move them, so that the probe can tell

    def __str__(self) -> str:
        if self.moved:
            moved = f"{self.moved} of {self.forecasts} forecasts moved, by up to {self.largest:.3g}"
            return f"leakage: {moved}, when the future changed"
        return f"leakage probe: {self.forecasts} forecasts made again with another future, none moved"


def probe(forecast: Forecast, rows: Rows, moments: list[int], back: int = 3, seed: int = 0) -> Leak:
    """`moments`: one of each series, from which on everything is changed; forecasts are made there and up to `back`
    points earlier."""
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
    """The same rows, but from a moment of each series on other values, and other things measured beside them; what is
    known ahead stays, for it is known."""
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
