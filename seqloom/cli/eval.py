"""`seqloom eval`: score a trained run on data."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli._options import DataOverride, Encoding, Int8, JsonOutput, RunPath, SourceColumn, data_settings
from seqloom.cli._show import main_scores, print_scores, show


def command(
    run: RunPath,
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to score on.")],
    column: Annotated[str | None, typer.Option(help="Text column; default: as in training.")] = None,
    source: SourceColumn = None,
    target: Annotated[str | None, typer.Option(help="Pairs: target column; default: as in training.")] = None,
    encoding: Encoding = None,
    override: DataOverride = None,
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Score a run on held-out data, next to naive baselines, and state the protocol."""
    from seqloom.runs.run import load

    given = (("column", column), ("source", source), ("target", target), ("encoding", encoding))
    columns = {name: value for name, value in given if value} | data_settings("eval", override or ())
    loaded = load(run, int8=int8)
    names = [score.name for score in loaded.task.scores]
    scores = loaded.evaluate(data, **columns)
    if int8:
        scores["float32"] = main_scores(load(run).evaluate(data, **columns), names)
    show(scores, as_json, lambda found: print_scores({data: found}, names))
