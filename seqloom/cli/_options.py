"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")]
SourceColumn = Annotated[
    str | None,
    typer.Option(help="Pairs: source column, or its number without a header; default: as in training."),
]
Int8 = Annotated[bool, typer.Option("--int8", help="Quantise linear weights to 8 bits: faster, slightly less exact.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder created by `seqloom fit`.")]
