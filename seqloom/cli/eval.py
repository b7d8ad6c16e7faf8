"""`seqloom eval`: score a trained run on data."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seqloom.cli._options import DataOverride, Int8, JsonOutput, RunPath, SourceColumn, data_settings
from seqloom.cli._run import load_run
from seqloom.cli._show import main_scores, print_scores, show
from seqloom.core.waiting import during

_WARNINGS = {
    "train": "warning: this run was trained on {data}; its scores there say little about new data",
    "valid": "warning: the checkpoint of this run was selected on {data}; its scores there are slightly too good",
}


def command(
    run: RunPath,
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to score on.")],
    column: Annotated[str | None, typer.Option(help="Text column; default: as in training.")] = None,
    source: SourceColumn = None,
    target: Annotated[str | None, typer.Option(help="Pairs: target column; default: as in training.")] = None,
    override: DataOverride = None,
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Score a run on held-out data, next to naive baselines, and state the protocol."""
    given = (("column", column), ("source", source), ("target", target))
    columns = {name: value for name, value in given if value} | data_settings("eval", override or ())
    loaded = load_run(run, int8=int8)
    names = [score.name for score in loaded.task.scores]
    with during(f"scoring {data}"):
        scores = loaded.evaluate(data, **columns)
        if int8:
            scores["float32"] = main_scores(load_run(loaded.folder.path).evaluate(data, **columns), names)
    seen = loaded.seen(data, **columns)
    if seen:
        print(_WARNINGS[seen].format(data=data), file=sys.stderr)
    scores |= {"trained_on": seen == "train", "selected_on": seen == "valid"}
    show(scores, as_json, lambda found: print_scores({data: found}, names))
