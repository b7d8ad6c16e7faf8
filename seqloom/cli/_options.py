"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output; progress on standard error.")]
SourceColumn = Annotated[
    str | None,
    typer.Option(help="Pairs: column of what is given, a number if there is no header; else as in training."),
]
Int8 = Annotated[bool, typer.Option("--int8", help="Linear weights in a byte each: faster, a little less exact.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by `seqloom fit`.")]
