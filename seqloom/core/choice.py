"""Choice: a setting that was chosen from the data because the user did not give it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Choice(NamedTuple):
    """`path`: as in `-o path=value`; `reason`: a short clause for the log."""

    path: str
    value: Any
    reason: str
