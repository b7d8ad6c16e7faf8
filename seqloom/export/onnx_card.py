"""How the graphs of an ONNX export are used, for its card: names and shapes, and a loop that runs as it stands."""

from __future__ import annotations

from seqloom.core.rows import Json
from seqloom.export.source import Source

def usage(source: Source, facts: Json) -> str:
    return "TODO"
