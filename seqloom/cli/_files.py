"""Checks of the files that commands write."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import typer

from seqloom.core.errors import UserError

_OF_RUNS = {"run.json", "summary.json", "metrics.jsonl", "comparison.json", "result.json"}
_FOLDERS = {"model", "tokenizer", "checkpoints"}  # of a run, with everything in them


def parse_file(text: str) -> Path:
    """A file to write."""
    if text.endswith("/"):
        raise typer.BadParameter(f"{text} is a folder; give a file name")
    return Path(text)


def check_outs(outs: Mapping[str, Path | None], data: str | None = None) -> None:
    """Refuse unusable output files, by option, before the work begins."""
    for out in outs.values():
        check_out(out, data)
    for (one, first), (other, second) in combinations(outs.items(), 2):
        if first is not None and second is not None and os.path.realpath(first) == os.path.realpath(second):
            raise UserError(f"{one} and {other}: both are {first}; give two files")


def check_out(out: Path | None, data: str | None = None) -> None:
    """Refuse an unusable output path before the work begins."""
    if out is None:
        return
    if out.is_dir():
        raise UserError(f"{out}: is a folder; give a file name")
    if out.exists() and not out.is_file():
        raise UserError(f"{out}: is not a regular file, and would be replaced by one; give another name")
    if data is not None and out.exists() and os.path.exists(data) and os.path.samefile(out, data):
        raise UserError(f"{out}: is also --data and would be overwritten; choose another file")
    if (run := _run_of(out)) is not None:
        raise UserError(f"{out}: would change the files of {run}, which could then not be used; choose another file")


def check_page(page: Path | None) -> None:
    """Refuse a name by which no browser would open a page."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{page}: would be a web page; let the name end in .html")


def _run_of(out: Path) -> Path | None:
    """The run or comparison that the file would be a part of; other files in its folder are the user's."""
    place = Path(os.path.realpath(out))
    for folder in place.parents:
        inside = place.relative_to(folder).parts
        if inside[0] in _OF_RUNS | _FOLDERS and any(
            (folder / f"{kind}.json").exists() for kind in ("run", "comparison")
        ):
            return Path(os.path.relpath(folder))
    return None
