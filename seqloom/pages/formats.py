"""Readable numbers: a few significant digits, thousands separators, SI prefixes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

NONE = "–"  # shown where nothing was measured
MINUS = "−"
_LARGE = ("", "k", "M", "G", "T", "P", "E")


def places(values: Iterable[Any], spans: Iterable[Any] = ()) -> int:
    """Decimals for a column: four digits of its largest value, and enough to resolve its narrowest interval."""
    largest = max((abs(value) for value in values if _real(value)), default=0.0)
    narrowest = min((span for span in spans if _real(span) and span > 0), default=math.inf)
    decimals = 3 - math.floor(math.log10(largest)) if largest else 3
    if narrowest < math.inf:
        decimals = max(decimals, -math.floor(math.log10(narrowest)))
    return min(max(decimals, 0), 5)


def fixed(value: Any, decimals: int, *, sign: bool = False) -> str:
    if not _real(value):
        return NONE
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")  # no negative zero
    elif sign and value > 0:
        text = "+" + text
    return text.replace("-", MINUS)


def short(value: Any, digits: int = 4) -> str:
    """`digits` significant digits, without trailing zeros."""
    if not _real(value):
        return NONE
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if decimals else text).replace("-", MINUS)


def count(value: Any) -> str:
    return f"{round(value):,}" if _real(value) else NONE


def scaled(value: Any, unit: str = "", digits: int = 3) -> str:
    """Three digits and an SI prefix: 1.23 M; with a unit, 1.23 MB."""
    if not _real(value):
        return NONE
    power = 0
    while abs(value) >= 999.5 and power < len(_LARGE) - 1:
        value, power = value / 1000, power + 1
    return f"{short(value, digits)} {_LARGE[power]}{unit}".rstrip()


def span(seconds: Any) -> str:
    """A short duration, in milliseconds; below 0.1 ms in microseconds, from 1 s in seconds."""
    if not _real(seconds):
        return NONE
    if seconds < 1e-4:
        return f"{short(seconds * 1e6, 3)} µs"
    return f"{short(seconds * 1e3, 3)} ms" if seconds < 1 else f"{short(seconds, 3)} s"


def duration(seconds: Any) -> str:
    if not _real(seconds):
        return NONE
    if seconds < 120:
        return f"{short(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def percent(share: Any) -> str:
    return f"{short(share * 100, 3)} %" if _real(share) else NONE


def chance(p: Any) -> str:
    """A p-value with two digits, never shown as zero."""
    if not _real(p):
        return ""
    return "p < 0.0001" if p < 1e-4 else f"p = {short(p, 2)}"


def day(moment: Any) -> str:
    """2026-01-01 10:00 +00:00 as `2026-01-01 10:00 UTC`; anything but a date is returned unchanged."""
    try:
        when = datetime.fromisoformat(str(moment))
    except ValueError:
        return str(moment or "")
    zone = when.strftime("%z")
    zone = "" if not zone else " UTC" if zone.strip("+-0:") == "" else f" UTC{zone[:3]}:{zone[3:5]}"
    return when.strftime("%Y-%m-%d %H:%M") + zone


def plain(value: Any) -> str:
    """Any setting, on one line."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: NONE}[value]
    if isinstance(value, float):
        return short(value)
    if isinstance(value, int):
        return count(value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={'none' if item is None else plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    return str(value)


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
