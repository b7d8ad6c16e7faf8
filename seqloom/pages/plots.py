"""What a small figure shows, as data: lines with bands, bars, or a heat map; texts in English and Chinese.

`pages/drawing.py` draws it. A figure is a list of panels, one below the other, so that it can be read on a phone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from seqloom.pages.words import Pair

NOTHING: Pair = ("", "")


@dataclass(frozen=True)
class Level:
    """A dotted line across a panel: a noise floor, chance, what the claim says."""

    name: Pair
    at: float


@dataclass(frozen=True)
class Curve:
    name: Pair
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)  # a band, along y; empty: none
    high: list[float] = field(default_factory=list)
    draw: Literal["line", "points", "dashed"] = "line"  # dashed: a prediction or reference, without markers


@dataclass(frozen=True)
class Lines:
    x: Pair
    y: Pair
    curves: list[Curve]
    title: Pair = NOTHING
    log_x: bool = False
    log_y: bool = False
    ticks: list[float] = field(default_factory=list)  # along x; empty: chosen
    levels: list[Level] = field(default_factory=list)  # along y
    from_zero: bool = False  # y begins at 0
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class BarSeries:
    name: Pair
    values: list[float]  # one per group
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, each with its value; the names of groups stand above their bars."""

    x: Pair
    groups: list[Pair]
    series: list[BarSeries]
    title: Pair = NOTHING
    log: bool = False
    levels: list[Level] = field(default_factory=list)
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Heat:
    """Shaded cells, from the smallest to the largest value, or over the given range."""

    x: Pair
    y: Pair
    columns: list[str]
    rows: list[str]
    values: list[list[float]]  # a list for each row
    title: Pair = NOTHING
    range: tuple[float, float] | None = None
    kind: Literal["heat"] = "heat"


Panel = Lines | Bars | Heat
