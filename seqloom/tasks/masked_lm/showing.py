"""Which tokens of a text a report hides, to show what a model puts in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqloom.core.order import spread

GAPS = 5
_AROUND = 100  # characters shown on each side
_SEARCHED = 50  # tokens looked at for one that contains a letter or digit


def places(ids: Any, text: Callable[[int], str]) -> list[int]:
    """Evenly spaced places in a stream of token ids, each moved on to a token with a letter or digit."""
    found: list[int] = []
    for start in spread(GAPS + 1, len(ids))[1:].tolist():
        near = ids[start : start + _SEARCHED].tolist()
        place = next((start + n for n, id in enumerate(near) if any(map(str.isalnum, text(id)))), None)
        found += [place] if place is not None and place not in found else []
    return found


def around(before: str, after: str) -> tuple[str, str]:
    """The text on both sides of a gap, on one line."""
    left, right = before.replace("\n", " "), after.replace("\n", " ")
    left = "…" + left[-_AROUND:] if len(left) > _AROUND else left
    return left, right[:_AROUND] + "…" if len(right) > _AROUND else right
