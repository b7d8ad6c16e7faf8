"""A study: a claim, where it is made, how it is measured, and by which rule the figures decide.

`measure(quick, progress)` returns a Finding: the verdict, measured numbers beside what the claim says, one figure. What
was measured and how is all in the Finding; the Study holds only what does not depend on a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from seqloom.core.progress import Reporter
from seqloom.lab.scales import Bounds
from seqloom.lab.statistics import interval
from seqloom.pages.plots import NOTHING, BarSeries, Curve, Panel
from seqloom.pages.words import Pair

Verdict = Literal["holds", "conditions", "fails", "untold"]
VERDICTS: dict[Verdict, Pair] = {
    "holds": ("holds", "成立"),
    "conditions": ("holds under these conditions", "在以下条件下成立"),
    "fails": ("does not hold", "不成立"),
    "untold": ("cannot be told at this size", "在此规模下无法判断"),
}

# The five introductions that the claims are taken from: their titles, and what they are.
DOCUMENTS: dict[str, Pair] = {
    "000": ("从 RNN 到 Transformers, a tutorial", "《从 RNN 到 Transformers》，教程"),
    "001": ("从RNN到Transformer, notes on a lecture", "《从RNN到Transformer》，课程笔记"),
    "002": ("从 RNN 到 Transformer, a blog post of 2025-05-20", "《从 RNN 到 Transformer》，2025-05-20 的博客"),
    "003": ("从RNN到Transformers, a blog post of 2025-02-01", "《从RNN到Transformers》，2025-02-01 的博客"),
    "004": ("RNN & Transformer, a page of a course", "《RNN & Transformer》，课程页面"),
}


@dataclass(frozen=True)
class Measured:
    """One number with its 95 % interval over seeds, beside what the claim says of it."""

    name: Pair
    value: float
    claimed: Pair = NOTHING  # what the claim says, in words or as a number; empty: nothing
    low: float | None = None  # None: exact, or a single run
    high: float | None = None
    seeds: int = 1
    unit: Pair = NOTHING


@dataclass(frozen=True)
class Rows:
    """Further numbers as a table; a cell is a text or a number."""

    caption: Pair
    columns: list[Pair]
    rows: list[list[Pair | float | str]]


@dataclass(frozen=True)
class Finding:
    verdict: Verdict  # by the rule of the study, from the figures
    summary: Pair  # one or two sentences, built from the figures
    protocol: Pair  # data, sizes, seeds, what was varied: as this run did it
    numbers: list[Measured]
    figure: list[Panel]
    caption: Pair  # what the figure shows
    tables: list[Rows] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)  # data sets that were read: name, SHA-256


@dataclass(frozen=True)
class Study:
    title: Pair  # the English one is also the first line of the file, where `seqloom list studies` reads it
    claim: Pair
    sources: tuple[tuple[str, str], ...]  # document, section; or any other source and where in it
    rule: Pair  # which figures mean which verdict
    measure: Callable[[bool, Reporter], Finding]
    number: int | None = None  # in the list of claims of the five documents
    remarks: tuple[Pair, ...] = ()  # what to beware of
    needs: tuple[str, ...] = ()  # weights that a full run reads, such as weights:smollm2; a quick run reads none


def measured(
    name: Pair,
    values: Sequence[float] | np.ndarray,
    claimed: Pair = NOTHING,
    *,
    unit: Pair = NOTHING,
    bounds: Bounds = (None, None),
) -> Measured:
    """Mean over seeds with its 95 % interval (Student's t), on a scale on which it stays within the bounds."""
    found = interval([float(value) for value in values], bounds=bounds)
    return Measured(name, found.mean, claimed, found.low, found.high, found.seeds, unit)


def exact(name: Pair, value: float, claimed: Pair = NOTHING, *, unit: Pair = NOTHING, seeds: int = 1) -> Measured:
    """A number without an interval: a count, or the largest of all errors seen over so many seeds."""
    return Measured(name, float(value), claimed, seeds=seeds, unit=unit)


def curve(
    name: Pair, x: Sequence[float], table: Sequence[Sequence[float]] | np.ndarray, *, bounds: Bounds = (None, None)
) -> Curve:
    """Means over seeds with a band of 95 % intervals. `table`: for each x, the values of all seeds."""
    found = [interval([float(value) for value in values], bounds=bounds) for values in table]
    low = [one.mean if one.low is None else one.low for one in found]
    high = [one.mean if one.high is None else one.high for one in found]
    return Curve(name, [float(place) for place in x], [one.mean for one in found], low, high)


def ends(one: Measured) -> tuple[float, float]:
    """Its interval; a number without one may be anything."""
    return (-math.inf if one.low is None else one.low), (math.inf if one.high is None else one.high)


def above(differences: Sequence[Measured], margin: float) -> Verdict:
    """Whether, by whole intervals, all of them are above the margin, none, or some."""
    if all(ends(one)[0] > margin for one in differences):
        return "holds"
    if all(ends(one)[1] < margin for one in differences):
        return "fails"
    return "conditions" if any(ends(one)[0] > margin for one in differences) else "untold"


def bars(name: Pair, found: Sequence[Measured]) -> BarSeries:
    """A bar for each, with its interval."""
    low = [one.value if one.low is None else one.low for one in found]
    high = [one.value if one.high is None else one.high for one in found]
    return BarSeries(name, [one.value for one in found], low, high)


def finite(value: object) -> bool:
    """Whether every number in a finding, as JSON, is finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list | tuple) else True
