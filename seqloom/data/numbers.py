"""Numbers in cells: what is read as one, and how large it may be."""

from __future__ import annotations

import math
from typing import Any

LARGEST = 1e100  # of a number in double precision: sums of squares stay finite
LARGEST_SINGLE = 1e37  # in single precision, in which differences have to stay finite


def as_number(cell: Any) -> float:
    """Infinite if it is too large for a float; raises ValueError or TypeError for what is no number, such as 1_000,
    which only Python reads as one."""
    if isinstance(cell, str) and "_" in cell:
        raise ValueError
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def is_number(cell: Any) -> bool:
    try:
        as_number(cell)
    except (ValueError, TypeError):
        return False
    return True
