"""`seqloom eval`: score a trained run on data."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli._options import ColumnNames, DataOverride, Encoding, Int8, JsonOutput, RunPath, data_settings
from seqloom.cli._run import load_run
from seqloom.cli._show import main_scores, print_difference, print_scores, show
from seqloom.core.rows import Json
from seqloom.core.waiting import during


def command(
    run: RunPath,
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to score on.")],
    columns: ColumnNames = None,
    encoding: Encoding = None,
    override: DataOverride = None,
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Score a run on held-out data, next to naive baselines, and state the protocol."""
    from seqloom.data.shapes.columns import parse_columns

    named, options = parse_columns(columns or ()), {"encoding": encoding} | data_settings("eval", override or ())
    loaded = load_run(run, int8=int8)
    names = [score.name for score in loaded.task.scores]
    with during(f"scoring {data}"):
        scores = loaded.evaluate(data, columns=named, **options)
        if int8:
            whole = load_run(loaded.folder.path)
            whole.say = lambda text: None  # it was told once
            scores["float32"] = main_scores(whole.evaluate(data, columns=named, **options), names)

    def printed(found: Json) -> None:
        print_scores({data: found}, names)
        if int8:
            name = "perplexity" if loaded.task.perplexity else loaded.task.metric
            print_difference(name, found, found["float32"])

    show(scores, as_json, printed)
