"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from seqloom.core.config import parse_overrides
from seqloom.core.errors import UserError
from seqloom.core.rows import Json

JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="ROLE=NAME,...",
        help="Which column is what, e.g. text=review,label=stars; a number if there is no header; default: found.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of the data, such as gb18030; default: UTF-8, or that of its byte order mark."),
]
Int8 = Annotated[bool, typer.Option("--int8", help="Quantise linear weights to 8 bits: faster, slightly less exact.")]
RunPath = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Run folder, or that of a comparison: the model it recommends."),
]
DataOverride = Annotated[
    list[str] | None,
    typer.Option("-o", help="Any data setting, e.g. -o data.separator='|'; default: as in training."),
]


def data_settings(command: str, overrides: Iterable[str]) -> Json:
    """Overrides such as `data.dayfirst=true` as keyword arguments; other sections are refused."""
    settings = parse_overrides(overrides)
    if strange := [path for path in settings if not path.startswith("data.")]:
        raise UserError(f"-o {strange[0]}: {command} takes data settings only, which begin with `data.`")
    return {path.removeprefix("data."): value for path, value in settings.items()}
