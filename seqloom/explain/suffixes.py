"""The kinds of files that an explanation can be saved as; needs nothing, so that a wrong name is refused at once."""

from __future__ import annotations

from pathlib import Path

from seqloom.core.errors import UserError

SUFFIXES = (".html", ".svg", ".json", ".npz")


def check_suffix(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path}: unknown format; let the name end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    return path
