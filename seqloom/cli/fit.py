"""`seqloom fit`: train a model."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import Json
from seqloom.cli._show import print_summary, show


def command(
    recipe: Annotated[Path | None, typer.Argument(metavar="[RECIPE.toml]", help="Settings in a file.")] = None,
    task: Annotated[str | None, typer.Option(help="What to learn (see `seqloom list tasks`).")] = None,
    data: Annotated[str | None, typer.Option(help="File, folder or sample:NAME to learn from.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation text; else a part of --data.")] = None,
    test: Annotated[str | None, typer.Option(help="Test text; scored once, at the end.")] = None,
    model: Annotated[str | None, typer.Option(help="Architecture (see `seqloom list models`).")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A run whose encoder and tokenizer it begins with.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: a new one under runs/.")] = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any setting, e.g. -o model.width=256 -o train.steps=500.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model. Running the same command again continues it, or says that nothing is left to do."""
    if out is not None and (out / ".lock").exists() and os.environ.get("RANK", "0") == "0":
        from seqloom.runs.folder import RunFolder

        with RunFolder(out).lock():
            pass  # in use by another process? say so before loading torch
    from seqloom.runs.fit import fit

    run = fit(
        recipe, task=task, data=data, valid=valid, test=test, model=model, start=start, out=out,
        overrides=override or (), command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    if int(os.environ.get("RANK", 0)) == 0:
        names = [score.name for score in run.task.scores]
        show({"run": str(run.folder.path)} | run.summary, as_json, lambda summary: print_summary(summary, names))
