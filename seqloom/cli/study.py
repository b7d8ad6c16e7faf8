"""`seqloom study`: measure a claim about sequence models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput
from seqloom.core.errors import UserError
from seqloom.core.waiting import before_imports, clear


def command(
    name: Annotated[str | None, typer.Argument(help="The study; `seqloom list studies` has them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All studies; --out then has an index of them too.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Ends in seconds; too small to judge by.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result (NAME.json) and its page; what is there is not repeated.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is finished in --out.")] = False,
    as_json: JsonOutput = False,
) -> None:
    """Measure a claim about sequence models: its number beside the claim, a verdict and one figure."""
    if (name is None) != every:
        raise UserError("study: give the NAME of a study, or --all; `seqloom list studies` has them")
    from seqloom.studies._registry import study_names

    if name is not None and name not in study_names():
        from seqloom.core.errors import unknown

        raise unknown("study", name, study_names())
    before_imports("measuring")
    from seqloom.core.json_text import to_json
    from seqloom.studies._running import Records, study, study_all

    if name is None:
        records = study_all(quick=quick, out=out, fresh=fresh)
    else:
        records = Records([study(name, quick=quick, out=out, fresh=fresh)])
    clear()
    if as_json:
        facts = [record.facts() for record in records]
        found = facts[0] if name else {"studies": facts, "left_out": records.left_out}
        print(to_json(found).decode())
        return
    print("\n\n".join(map(str, records)))
    for other, reason in records.left_out.items():
        print(f"\nleft out: {reason if other in reason else f'{other}: {reason}'}")
    if out is not None:
        print(f"\npage: {out / ('index.html' if name is None else f'{name}.html')}")
