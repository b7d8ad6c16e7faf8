"""`seqloom list`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli._options import Json
from seqloom.cli._show import print_table, show
from seqloom.core.errors import unknown


def command(
    what: Annotated[str, typer.Argument(help="models | tasks | samples | runs")],
    name: Annotated[
        str | None, typer.Argument(help="One of them: its options; for runs: the folder to look in.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what there is, and the options of a model or task."""
    from seqloom.runs import listing

    if what not in listing.LISTS:
        raise unknown("list", what, listing.LISTS)
    show(listing.LISTS[what](name), as_json, print_table)
