"""Which encoder an index gets when none is named."""

from __future__ import annotations

from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.retrieve.settings import Settings
from seqloom.runs.source import cache_folder
from seqloom.weights.packages import is_installed

USUAL, NONE = "weights:minilm", "none"


def choose_encoder(named: str | None, out: str | Path) -> tuple[str | None, str]:
    """The encoder, None for BM25 alone, and what is to be said about the choice.

    An index that is brought up to date keeps its own."""
    if named is not None:
        return (None if named == NONE else named), ""
    try:
        facts = Settings.read(Path(out)).encoder
        return (facts.name if facts else None), ""
    except UserError:
        pass
    if is_installed(USUAL.partition(":")[2], cache_folder()):
        return USUAL, f"encoder: {USUAL}"
    return None, "no encoder: search is by words alone (BM25); for search by meaning too: seqloom weights minilm"
