"""Values as standard JSON, which has no NaN, no infinity and no half characters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Any) -> bytes:
    """One line; NaN and infinity become null."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
