"""Loading the run that a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.core.waiting import before_imports, clear
from seqloom.runs.folder import RunFolder
from seqloom.runs.winner import run_of

if TYPE_CHECKING:
    from seqloom.runs.run import Run


def load_run(path: Path, *, int8: bool = False) -> Run:
    """The run in a folder, or the one that the comparison in it recommends; what is no run is refused at once."""
    folder = run_of(path)
    RunFolder(folder).config()
    before_imports("loading the model")
    from seqloom.runs.run import load

    try:
        return load(folder, int8=int8)
    finally:
        clear()
