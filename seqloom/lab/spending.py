"""The error rate of a comparison, shared among its looks.

Whoever looks at a result, adds seeds and looks again has several chances of a false alarm. So the error rate is spent
by a rule that is fixed in the plan before the first run: the first look gets four fifths of it, every later one half of
what is left. However often seeds or entries are added, all looks together have the error rate that was planned.
"""

from __future__ import annotations

LEVEL = 0.05  # of the whole comparison
FIRST = 0.8  # share of the first look


def level_at(look: int, level: float = LEVEL) -> float:
    """The error rate of the look with this number, counted from 1."""
    if look < 1:
        raise ValueError(f"looks are counted from 1, not {look}")
    return level * FIRST if look == 1 else level * (1 - FIRST) / 2 ** (look - 1)
