"""`seqloom compare --task retrieval`: retrievers instead of models. Nothing is trained."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer

from seqloom.cli._show import show
from seqloom.cli._table import print_table
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports

RETRIEVAL = "retrieval"
_OPTIONS = {"data", "models", "out", "task", "queries", "judgements", "columns", "margin", "as_json"}


def compare_retrieval(context: typer.Context) -> None:
    """`context`: with the options of `compare`, of which those of training are refused."""
    given = {name: value for name, value in context.params.items() if _on_the_command_line(context, name)}
    if (task := given.get("task", RETRIEVAL)) != RETRIEVAL:
        raise UserError(f"--queries and --judgements: go with --task {RETRIEVAL}, not with {task}")
    for option in context.command.params:
        if option.name in given.keys() - _OPTIONS:
            raise UserError(
                f"{option.opts[-1]}: does not go with --task {RETRIEVAL}, where nothing is trained; leave it out"
            )
    if "queries" not in given or "judgements" not in given:
        raise UserError(f"--task {RETRIEVAL}: needs --queries and --judgements, which documents answer them")
    if len(given["data"]) > 1:
        raise UserError(f"--data: --task {RETRIEVAL} takes one folder of documents")
    (data,) = given["data"]
    before_imports("preparing the comparison")
    from seqloom.compare.defaults import named_after
    from seqloom.data.shapes.columns import parse_columns
    from seqloom.retrieve.comparing import compare_retrievers
    from seqloom.runs.terminal import reporter

    found = compare_retrievers(
        data, queries=given["queries"], judgements=given["judgements"], models=given.get("models"),
        out=given.get("out") or named_after(data),
        columns=parse_columns(given.get("columns") or ()) or None, margin=context.params["margin"],
        command=shlex.join(["seqloom", *sys.argv[1:]]), progress=reporter(),
    )  # fmt: skip
    shown = {"folder": str(found.folder), "report": str(found.report)} | found.result
    show(shown, context.params["as_json"], lambda result: _print(result, found.folder, found.report))


def _on_the_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _print(result: Json, folder: Path, report: Path) -> None:
    from rich.console import Console

    from seqloom.retrieve.comparison import advice, rows_of, use

    words = f"{result['documents']:,} documents, {result['chunks']:,} chunks, {result['queries']:,} judged queries"
    print(words)
    if result["absent"] or result["unjudged"]:
        print(f"judged documents that are not there: {result['absent']:,}; queries left out: {result['unjudged']:,}")
    print_table(rows_of(result))
    print("\n".join(["", *advice(result, min(120, Console().width)), "", "Use it:", f"  {use(result, folder)[1]}"]))
    print(f"Report: {report}")
