"""Calendar features: the position of a time within the day, the week, the month and the year.

Each is a position on a circle, encoded by its sine and cosine, so that 23:00 is next to midnight and December next to
January.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.core.errors import UserError, unknown

CALENDAR = ("hour", "weekday", "monthday", "yearday", "month")
SUITS = {
    "second": ("hour", "weekday"),
    "minute": ("hour", "weekday"),
    "hour": ("hour", "weekday", "yearday"),
    "day": ("weekday", "yearday"),
    "week": ("yearday",),
    "month": ("month",),
}


def calendar_of(listed: str, unit: str) -> list[str]:
    """The calendar features in a list like `hour,weekday`; `auto`: those that suit the unit."""
    if listed == "auto":
        return list(SUITS.get(unit, ()))
    names = [name for part in listed.split(",") if (name := part.strip())]
    for name in names:
        if name not in CALENDAR:
            raise unknown("calendar feature", name, CALENDAR)
    if names and unit == "number":
        raise UserError(f"data.calendar={listed}: needs dates, but the times of this data are plain numbers")
    return names


def calendar_names(calendar: Sequence[str]) -> list[str]:
    return [f"{name}_{wave}" for name in calendar for wave in ("sin", "cos")]


def calendar_features(times: np.ndarray, calendar: Sequence[str]) -> np.ndarray:
    """(T, 2 x calendar): sine and cosine of the position of each time."""
    phases = [_phase(times, name) for name in calendar]
    waves = [wave(2 * np.pi * phase) for phase in phases for wave in (np.sin, np.cos)]
    return np.stack(waves, axis=-1).astype(np.float32) if waves else np.zeros((len(times), 0), np.float32)


def _phase(times: np.ndarray, name: str) -> np.ndarray:
    """Position on the circle, 0 to 1."""
    day, month, year = (times.astype(f"datetime64[{unit}]") for unit in "DMY")
    if name == "hour":
        return (times - day).astype(np.int64) / 86_400
    if name == "weekday":
        return ((day.astype(np.int64) + 3) % 7) / 7  # 1970 began on a Thursday; Monday is 0
    if name == "monthday":
        return (day - month.astype("datetime64[D]")).astype(np.int64) / 31
    if name == "month":
        return (month.astype(np.int64) % 12) / 12
    return (day - year.astype("datetime64[D]")).astype(np.int64) / 366
