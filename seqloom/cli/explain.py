"""`seqloom explain`: attention maps of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._files import check_out
from seqloom.cli._options import JsonOutput, RunPath
from seqloom.cli._run import load_run
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs.durable import make_folder, to_json, write_file


def command(
    run: RunPath,
    text: Annotated[str, typer.Option(help="Source text.")],
    target: Annotated[str | None, typer.Option(help="Output to explain; default: what the model writes.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for a page with all maps (HTML).")] = None,
    data_out: Annotated[Path | None, typer.Option("--data-out", help="File for tokens and weights (JSON).")] = None,
    gold: Annotated[
        Path | None, typer.Option(help="File with the reference alignment, one line like `0-0 1-2`; needs --target.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Show where in the source a model looks while it writes: attention maps of source against output."""
    if not text.strip():
        raise UserError("--text: empty; there is nothing to explain")
    for path in (out, data_out):
        check_out(path)
    loaded = load_run(run)
    from seqloom.explain.alignments import explain_alignment, read_gold
    from seqloom.explain.page import page

    links = read_gold(gold) if gold else None
    found = explain_alignment(loaded, text.strip(), target, links)
    for path, content in ((out, lambda: page(found).encode()), (data_out, lambda: to_json(found) + b"\n")):
        if path is not None:
            make_folder(path.parent)
            write_file(path, content())
    if as_json:
        print(to_json(found).decode())
    else:
        written = (f"written: {path}" for path in (out, data_out) if path is not None)
        print("\n".join([*_described(found), *written]))


def _described(found: Json) -> Iterator[str]:
    """The source token that each output token attends to most, and the numbers of each map."""
    yield f"output: {found['target']}"
    if found["cut"]:
        yield "the source was too long for the model; its end was cut off"
    width = max(len(repr(token)) for token in found["target_tokens"])
    for token, row in zip(found["target_tokens"], found["maps"][0]["weights"], strict=True):
        most = max(range(len(row)), key=row.__getitem__)
        yield f"  {token!r:>{width}}  {row[most]:.2f}  {found['source_tokens'][most]!r}"
    for part in found["maps"]:
        forward = "-" if part["forward"] is None else f"{part['forward']:.0%}"
        error = f", alignment error rate {part['error_rate']:.3f}" if "error_rate" in part else ""
        yield f"{part['name']}: {forward} of the steps do not move back{error}"
