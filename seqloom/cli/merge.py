"""`seqloom merge`: make a plain run of one with adapters or a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput, RunPath
from seqloom.cli._show import print_summary, show
from seqloom.core.waiting import before_imports


def command(
    run: RunPath,
    out: Annotated[Path, typer.Option(metavar="RUN", help="Run folder to write.")],
    as_json: JsonOutput = False,
) -> None:
    """Make a plain run, which needs nothing else, of one with adapters (LoRA) or a prompt: add the weights it needs."""
    before_imports("merging")
    from seqloom.adapt.merge import merge

    merged = merge(run, out=out)
    names = [score.name for score in merged.task.scores]
    show({"run": str(out)} | merged.summary, as_json, lambda summary: print_summary(summary, names))
