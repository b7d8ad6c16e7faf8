"""`seqloom generate`: continue a text."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seqloom.cli._options import Int8, JsonOutput, RunPath
from seqloom.cli._run import load_run
from seqloom.cli._show import print_texts, show
from seqloom.core.rows import Json


def command(
    run: RunPath,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    max_new: Annotated[
        int, typer.Option("--max-new", min=0, max=1_000_000, help="Maximum number of tokens to generate.")
    ] = 200,
    temperature: Annotated[
        float, typer.Option(help="Sampling temperature; below 1: more conservative; 0: the most likely token.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option("--top-k", help="Sample from the k most likely tokens; 0: all.")] = 0,
    top_p: Annotated[
        float, typer.Option("--top-p", help="Sample from the fewest tokens with this total probability.")
    ] = 1.0,
    beams: Annotated[int, typer.Option(min=1, help="Number of beams; above 1: beam search instead of sampling.")] = 1,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Random seed; the same seed gives the same text.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="Number of continuations, generated as one batch.")] = 1,
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text (may be given several times).")] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="The prompt is a user's message: answer it, by the model's chat template.")
    ] = False,
    system: Annotated[str, typer.Option(help="System message that a chat begins with.")] = "",
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Continue a text, token by token."""
    loaded = load_run(run, int8=int8)
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    how: Json = {"max_new": max_new, "chat": chat, "system": system} | ({"beams": beams} if beams > 1 else sampling)
    shown = "" if chat else prompt  # before what is written
    if beams == count == 1 and not as_json:
        for number, piece in enumerate(loaded.write(prompt, stop=stop or (), **how)):
            sys.stdout.write(piece if number else shown + piece)
            sys.stdout.flush()
        print()
        return
    texts = loaded.generate(prompt, count=count, stop=stop or (), **how)
    texts = [texts] if count == 1 else texts
    show({"prompt": prompt, "texts": texts}, as_json, lambda found: print_texts(shown, found["texts"]))
