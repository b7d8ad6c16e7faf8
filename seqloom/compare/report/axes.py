"""The axes of charts: round tick values that differ, ranges within what is possible, and room for labels."""

from __future__ import annotations

import math

from seqloom.compare.report import facts
from seqloom.compare.report.facts import Result
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Series


def score_axis(result: Result, title: str, series: list[Series]) -> Axis:
    """Where all scores are the same, the axis would be centred on it, and might extend to impossible scores."""
    values = {y for line in series for y in line.y}
    (low, high), value = facts.bounds(result), next(iter(values), 0.0)
    if len(values) != 1:
        return Axis(title)
    ends = (value - 0.1 if low is None else low, value + max(0.1, abs(value)) if high is None else high)
    return Axis(title, range=ends)


def ticks(values: list[float], unit: str = "") -> list[tuple[float, str]]:
    """Round tick values for a logarithmic axis: powers of ten, with others in between if there is room."""
    low, high = min(values, default=0), max(values, default=0)
    if low <= 0:
        return []
    if high / low < 1.001:
        return [(low, formats.scaled(low, unit))]
    if high / low < 4:
        return _labelled(_even_steps(low, high), unit)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    steps = (1,) if high / low > 2000 else (1, 3) if high / low > 100 else (1, 2, 5)
    found = [step * 10.0**power for power in powers for step in steps]
    found = [value for value in found if low / 1.6 <= value <= high * 1.6]
    return _labelled(found, unit)


def _labelled(values: list[float], unit: str = "") -> list[tuple[float, str]]:
    """With as many digits as it takes for all labels to differ, and at least three."""
    labels: list[str] = []
    for digits in range(3, 8):
        labels = [formats.scaled(value, unit, digits) for value in values]
        if len(set(labels)) == len(labels):
            break
    return list(dict(zip(labels, zip(values, labels, strict=True), strict=True)).values())


def _even_steps(low: float, high: float) -> list[float]:
    """Two to five round tick values, for a range too narrow for powers of ten."""
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(s * power for s in (0.2, 0.25, 0.5, 1, 2) if (high - low) / (s * power) <= 5)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def width_of(label: str) -> float:
    """Of a label, in pixels, with a space after it."""
    return 8 + sum(6 if ord(letter) < 0x2E80 else 11 for letter in label)
