"""`seqloom list`: models, tasks, samples, studies and runs."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput
from seqloom.cli._show import show
from seqloom.cli._table import print_table
from seqloom.core.errors import unknown


def command(
    what: Annotated[str | None, typer.Argument(help="What to list: models, tasks, samples, studies or runs.")] = None,
    name: Annotated[
        str | None, typer.Argument(help="Model or task: list its options; runs: the folder to look in.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """List models, tasks, samples, studies or runs, or the options of one model or task."""
    from seqloom.runs import listing

    if what is None:
        show(listing.kinds(), as_json, print_table)
        return
    if what not in listing.LISTS:
        raise unknown("list", what, listing.LISTS)
    show(listing.LISTS[what](name), as_json, print_table)
