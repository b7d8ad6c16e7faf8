"""`seqloom prompt`: the accuracy of a prompted language model against the number of examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import ColumnNames, JsonOutput
from seqloom.cli._show import show
from seqloom.cli._table import print_table
from seqloom.core.config import parse_overrides
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="Language model: a run, weights:NAME, hf:PATH, or openai:URL#MODEL, a chat endpoint."
        ),
    ],
    data: Annotated[str, typer.Option(help="Labelled texts to draw examples from.")],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder for curve.json; what is finished there is not done again."),
    ],
    test: Annotated[str | None, typer.Option(help="Labelled texts to score; default: a part of --data.")] = None,
    shots: Annotated[str, typer.Option(help="Numbers of examples per label.")] = "0,1,2,4,8",
    draws: Annotated[int, typer.Option(min=1, help="Draws of the examples for each number.")] = 5,
    template: Annotated[str, typer.Option(help="`default`, or a TOML file with the words of the prompt.")] = "default",
    rows: Annotated[int, typer.Option(min=0, help="Test rows to score, evenly spaced; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first draw.")] = 0,
    columns: ColumnNames = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any other setting, e.g. -o task.calibration=false.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Classify by prompting: accuracy for each number of labelled examples in the prompt. Nothing is trained."""
    counts = shots.split(",")
    if not all(count.strip().isdecimal() for count in counts):
        raise UserError(f"--shots {shots}: give whole numbers, for example 0,1,2,4,8")
    before_imports("preparing")
    from seqloom.adapt.prompting import prompt
    from seqloom.data.shapes.columns import parse_columns

    curve = prompt(
        source, data, test=test, shots=[int(count) for count in counts], draws=draws, template=template, rows=rows,
        seed=seed, out=out, columns=parse_columns(columns or ()), options=parse_overrides(override or ()),
    )  # fmt: skip
    show(curve.facts, as_json, _print)


def _print(facts: Json) -> None:
    print(f"{facts['source']}: {facts['rows']:,} test rows; most frequent label: {facts['majority']:.3f}")
    print_table(
        [
            {"examples per label": point["shots"], "draws": point["draws"], "accuracy": point["accuracy"]}
            | {"from": point["low"], "to": point["high"]}
            | ({"no label": point["no_label"]} if "no_label" in point else {})
            for point in facts["points"]
        ]
    )
    for interval in dict.fromkeys(point["interval"] for point in facts["points"]):
        which = [str(point["shots"]) for point in facts["points"] if point["interval"] == interval]
        print(f"from, to ({', '.join(which)} examples): {interval}")
