"""`seqloom fit`: train a model."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import ColumnNames, Encoding, JsonOutput
from seqloom.cli._show import print_summary, show
from seqloom.core.waiting import before_imports


def command(
    recipe: Annotated[Path | None, typer.Argument(metavar="[RECIPE.toml]", help="File with settings.")] = None,
    task: Annotated[str | None, typer.Option(help="Task to learn (see `seqloom list tasks`).")] = None,
    data: Annotated[str | None, typer.Option(help="File, folder or sample:NAME to train on.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data; default: a part of --data.")] = None,
    test: Annotated[str | None, typer.Option(help="Test data; scored once, at the end.")] = None,
    encoding: Encoding = None,
    model: Annotated[str | None, typer.Option(help="Model to train (see `seqloom list models`).")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Weights and tokenizer to start from: a run, weights:NAME (see `seqloom weights`), or hf:PATH, a "
            "folder of Hugging Face transformers or a GGUF file.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to write; default: a new one under runs/.")] = None,
    columns: ColumnNames = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any setting, e.g. -o model.width=256 -o train.steps=500.")
    ] = None,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose/--no-choose", help="Choose what is not given from the data, or take the listed defaults."
        ),
    ] = True,
    as_json: JsonOutput = False,
) -> None:
    """Train a model. Running the same command again resumes it, or reports that it is complete."""
    if out is not None and (out / ".lock").exists() and not (out / "summary.json").exists() and _is_main():
        from seqloom.runs.folder import RunFolder

        with RunFolder(out).lock():
            pass  # report a run in use by another process before loading torch
    if _is_main():
        before_imports("preparing")
    from seqloom.data.shapes.columns import parse_columns
    from seqloom.runs.fit import fit

    run = fit(
        recipe, task=task, data=data, valid=valid, test=test, encoding=encoding, model=model, start=start, out=out,
        columns=parse_columns(columns or ()), overrides=override or (), choose=choose,
        command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    if _is_main():
        names = [score.name for score in run.task.scores]
        show({"run": str(run.folder.path)} | run.summary, as_json, lambda summary: print_summary(summary, names))


def _is_main() -> bool:
    """Whether this is the main one of several processes, or the only one."""
    return os.environ.get("RANK", "0") == "0"
