"""Axes of the small figures: from values to pixels, and which ticks to draw."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from seqloom.pages.formats import MINUS, short

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    log: bool
    start: float  # pixels
    end: float

    def __call__(self, value: float) -> float:
        low, high, value = (self._flat(v) for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(1.05, max(-0.05, share)) * (self.end - self.start)

    def _flat(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self, most: int = 6) -> list[float]:
        return _decades(self.low, self.high, most) if self.log else _round_steps(self.low, self.high, most)


def scale(values: Iterable[float], log: bool, start: float, end: float, *, zero: bool = False) -> Scale:
    """Fitted to the values, with a little room; of a log scale, only positive values count."""
    found = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [1.0]
    low, high = min(found), max(found)
    if log:
        room = max(0.03, 0.04 * math.log10(high / low))
        return Scale(low / 10**room, high * 10**room, True, start, end)
    if zero:
        low = min(0.0, low)
    room = 0.04 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low if zero and low == 0 else low - room, high + room, False, start, end)


def tick_label(value: float) -> str:
    """Short: 0.25, 1k, 10⁻⁶."""
    if value == 0:
        return "0"
    power = math.log10(abs(value))
    if not -3 <= power < 6:
        exponent = math.floor(power + 1e-9)
        factor = value / 10.0**exponent
        head = "" if abs(factor - 1) < 1e-6 else f"{short(factor, 2)}·"
        return f"{head}10{str(exponent).translate(_SUPERSCRIPT)}"
    if abs(value) >= 10_000 and value % 1000 == 0:
        return f"{short(value / 1000, 4)}k"
    return short(value, 4).replace(MINUS, "−")


def _round_steps(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 2.5, 5, 10) if unit * n >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        every = math.ceil((last - first + 1) / most)
        return [10.0**n for n in range(first, last + 1, every)]
    between = [factor * 10.0**n for n in range(first - 1, last + 2) for factor in (1, 2, 5)]
    found = [value for value in between if low <= value <= high]
    return found if len(found) >= 2 else _round_steps(low, high, most)
