"""A unit of work in a comparison and its result, both JSON-like, so that any process can run it."""

from __future__ import annotations

from seqloom.core.rows import Json

Job = Json
Result = Json
