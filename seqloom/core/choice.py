"""Choice: an option that the user left open, chosen from the data by a stated rule."""

from __future__ import annotations

from typing import Any, NamedTuple


class Choice(NamedTuple):
    path: str  # like "task.longest"
    value: Any
    reason: str  # a short clause for the log: "99 % of the texts have at most 61 tokens"
