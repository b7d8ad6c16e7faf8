"""A piece of a comparison's work and what came of it, both JSON-like: any process can do it."""

from __future__ import annotations

from seqloom.core.rows import Json

Job = Json
Result = Json
