"""A setting that was chosen from the data, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Choice(NamedTuple):
    path: str
    value: Any
    reason: str
