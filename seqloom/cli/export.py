"""`seqloom export`: write a run in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import JsonOutput, RunPath
from seqloom.cli._show import show
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports, clear


def command(
    run: RunPath,
    to: Annotated[str, typer.Option(metavar="TARGET", help="hf, onnx, ctranslate2 or gguf.")],
    out: Annotated[Path, typer.Option(help="Folder to write: a new one, or that of an earlier export.")],
    int8: Annotated[bool, typer.Option("--int8", help="Weights of 8 bits; for ctranslate2.")] = False,
    as_json: JsonOutput = False,
) -> None:
    """Write a run for another program (transformers, ONNX, CTranslate2, llama.cpp), load it there and compare."""
    before_imports("exporting")
    from seqloom.export.exporting import export

    try:
        facts = export(run, to=to, out=out, int8=int8)
    finally:
        clear()
    show(facts, as_json, _print)


def _print(facts: Json) -> None:
    from seqloom.runs.durable import shown

    print(f"{shown(facts['out'])}: {facts['architecture']} for {facts['target']}")
    if "difference" in facts:
        print(f"compared on {facts['inputs']}: {facts['compared']} differ by {facts['difference']:.2g} at most")
    if "perplexity" in facts:
        both = facts["perplexity"]
        print(f"perplexity: {both['run']:.6g} (run), {both['export']:.6g} (export), {both['change']:+.3%}")
