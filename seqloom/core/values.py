"""What may stand in a configuration at all, whatever the option: finite numbers of a sane size, text that can be stored
and printed, short lists. An option may be narrower, or wider where it says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LARGEST = 10**9  # number, also negative, of an option that states no bound of its own
_LONGEST_TEXT = 100_000  # characters
_LONGEST_LIST = 10_000
_DEEPEST = 32  # lists and tables in each other


def check_text(text: str) -> None:
    """Raise if it cannot be written as UTF-8, or stands for no file on any system."""
    if "\0" in text:
        raise ValueError("contains a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("is not valid Unicode text; if it is the name of a file, rename the file")
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"has {len(text):,} characters; at most {_LONGEST_TEXT:,}")


def check_value(value: Any, least: float | None = None, most: float | None = None, depth: int = 0) -> None:
    """Raise unless the value is sane; `least` and `most`: of numbers, None if they are checked elsewhere."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, int | float):
        if isinstance(value, float) and (least is not None or most is not None) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        if most is not None and not value <= most:
            raise ValueError(f"must be at most {most:,}")
        if least is not None and not value >= least:
            raise ValueError(f"must be at least {least:,}")
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        if depth == _DEEPEST:
            raise ValueError(f"is nested too deeply; at most {_DEEPEST} levels")
        if len(value) > _LONGEST_LIST:
            raise ValueError(f"has {len(value):,} items; at most {_LONGEST_LIST:,}")
        if isinstance(value, Mapping):
            check_value([*value, *value.values()], depth=depth)
            return
        for item in value:
            check_value(item, least, most, depth + 1)
