"""How much work a piece of code does, counted in function calls, which is the same on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(action: Callable[[], object]) -> int:
    """Calls of functions, of Python and of C, while it runs."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def grows_in_proportion(action: Callable[[int], object], size: int) -> bool:
    """Whether twice the size is at most about twice the work; the first run fills caches."""
    action(size)
    return calls(lambda: action(2 * size)) <= 2.2 * calls(lambda: action(size)) + 100
