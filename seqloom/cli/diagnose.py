"""`seqloom diagnose`: what the memory of each model can and cannot do."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput
from seqloom.cli._show import show
from seqloom.cli._table import print_table
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports


def command(
    models: Annotated[
        str | None,
        typer.Option(help="Models: rnn,gpt or, with options, a=gpt:preset=gpt2; default: all that can take part."),
    ] = None,
    problems: Annotated[str | None, typer.Option(help="Problems: parity,recall; default: all.")] = None,
    params: Annotated[int | None, typer.Option(min=1, help="Parameters of every model; default: 40000.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Most training steps of a run; default: 1000.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each model on each problem; default: 3.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once, with one CPU thread each.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: two problems, few steps, one seed.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the runs, the figures and the page; default: runs/diagnose (-quick)."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Diagnose models: counting beyond the trained lengths, recall, induction, copying; all models at the same size and
    budget, beside published figures. Running the command again retrains nothing that is finished."""
    before_imports("preparing the diagnosis")
    from seqloom.diagnose.diagnosing import diagnose

    found = diagnose(
        models, problems=problems, params=params, steps=steps, seeds=seeds, jobs=jobs, quick=quick, out=out,
        command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    shown = {"folder": str(found.folder), "report": str(found.report)} | found.result
    show(shown, as_json, lambda result: _print(result, found.report))


def _print(result: Json, report: Path) -> None:
    from rich.console import Console

    from seqloom.diagnose.diagnosis import rows_of, sentences

    print("accuracy in %, best seed / median of the seeds:")
    print_table(rows_of(result))
    print("\n".join(["", *sentences(result, min(120, Console().width)), f"Report: {report}"]))
