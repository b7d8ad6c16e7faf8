"""`seqloom serve`: runs and indexes over HTTP, with a page for a browser."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import Int8
from seqloom.core.errors import UserError
from seqloom.serve.limits import MB, PORT

_FILE = typer.Option(help="File with the token; default: serve-token in the cache, made at the first start.")
_SHARED = "CPU threads of each model; default: the cores, shared among the models and HTTP."
_THREADS = typer.Option(min=1, max=1024, help=_SHARED)


def command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN ...]", help="Run folders, or those of comparisons; without any, only the page."),
    ] = None,
    index: Annotated[
        list[Path] | None, typer.Option(metavar="INDEX", help="Folder that `seqloom index` made; may be repeated.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--runs", metavar="DIR", help="Folder whose runs and comparisons the page lists.")
    ] = Path("runs"),
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine it needs TLS.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.")] = PORT,
    token_file: Annotated[Path | None, _FILE] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Ask for no token: everyone on this machine may use the server.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Further name of this server in a URL; may be repeated.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front of the server speaks TLS to the outside.")
    ] = False,
    cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate for TLS (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate (PEM).")] = None,
    rows: Annotated[int, typer.Option(min=1, max=1024, help="Texts that a model continues together.")] = 32,
    threads: Annotated[int | None, _THREADS] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MB", min=512, max=1 << 24, help="Address space of each model process.")
    ] = None,
    int8: Int8 = False,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve models over HTTP: a page for a browser, and the protocol of OpenAI's API for programs."""
    if threads is not None and threads > max(16, 4 * (os.cpu_count() or 1)):
        raise UserError(f"--threads {threads}: more than four for each core of this machine; lower it")
    from seqloom.serve.children.models import Opening
    from seqloom.serve.serving import serve

    _let_the_server_speak()
    opening = Opening(int8=int8, rows=rows, threads=threads, memory=None if memory is None else memory * MB)
    serve(
        [str(run) for run in runs or ()],
        indexes=index or (),
        folder=folder,
        host=host,
        port=port,
        token_file=token_file,
        token=not no_token,
        allow_hosts=allow_host or (),
        behind_proxy=behind_proxy,
        cert=cert,
        key=key,
        opening=opening,
        say=lambda line: print(line, flush=True),
        opened=_browse if browse else lambda url: None,
    )


def _let_the_server_speak() -> None:
    """Commands silence all logs, because of those of libraries; of a server its own is wanted."""
    if logging.root.manager.disable:
        logging.disable(logging.NOTSET)
        logging.root.setLevel(logging.CRITICAL)


def _browse(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
