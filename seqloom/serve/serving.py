"""`serve(...)`: a server for runs and indexes."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.stream import default_cache
from seqloom.runs.durable import shown
from seqloom.serve.addresses import allowed_hosts, is_loopback
from seqloom.serve.children.child import Failed
from seqloom.serve.children.models import Models, Opening
from seqloom.serve.limits import MB, PORT, Limits
from seqloom.serve.running import Binding, run
from seqloom.serve.state import State
from seqloom.serve.token import kept_token

TOKEN_FILE = "serve-token"
_WAYS = "give --cert FILE and --key FILE, or --behind-proxy if a proxy in front of it speaks TLS"
_LEAST = 512 * MB  # of address space: torch alone takes more than that


def serve(
    runs: Sequence[str | Path] = (),
    *,
    indexes: Sequence[str | Path] = (),
    folder: str | Path = "runs",
    host: str = "127.0.0.1",
    port: int = PORT,
    token_file: str | Path | None = None,
    token: bool = True,
    allow_hosts: Sequence[str] = (),
    behind_proxy: bool = False,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    opening: Opening | None = None,
    limits: Limits | None = None,
    say: Callable[[str], None] = print,
    opened: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve runs and indexes over HTTP until a signal.

    `runs`: run folders, or folders of comparisons: the models they recommend; without any, only the page is served,
    over the runs in `folder`. `token=False` is possible only on a loopback address. `opened` is called with the address
    for a browser.
    """
    check_packages()
    check_exposure(host, port, token, behind_proxy, cert, key)
    opening, limits = opening or Opening(), limits or Limits()
    if opening.threads is None:
        opening = replace(opening, threads=_share(len(runs) + len(indexes)))
    if opening.memory is not None and opening.memory < _LEAST:
        raise UserError(f"--memory: a model process needs at least {_LEAST // MB} MB")
    hosts = allowed_hosts(host, allow_hosts)
    models = Models(limits)
    for each in runs:
        models.add(run_folder(str(each)), "run", opening, named=str(each))
    for each in indexes:
        models.add(index_folder(Path(each)), "index", opening)
    file = Path(token_file) if token_file is not None else default_cache() / TOKEN_FILE
    secret = kept_token(file)[0] if token else None
    secure = cert is not None or behind_proxy
    state = State(models, limits, secret, hosts, Path(folder), secure)
    binding = Binding(_bind(host, port), *(None if each is None else str(each) for each in (cert, key)))
    url = _url(binding, host, cert is not None)
    _log()

    def ready() -> None:
        address = url if secret is None else f"{url}#token={secret}"
        say(told(address, state))
        opened(address)

    try:
        asyncio.run(run(state, binding, ready))
    except Failed as error:
        raise UserError(str(error)) from None


def check_packages() -> None:
    try:
        import fastapi
        import h11
        import uvicorn
    except ImportError:
        raise UserError("serving needs the fastapi and uvicorn packages: pip install 'seqloom[serve]'") from None
    _ = fastapi, h11, uvicorn


def check_exposure(
    host: str, port: int, token: bool, behind_proxy: bool, cert: str | Path | None, key: str | Path | None
) -> None:
    """Nobody exposes a server by mistake."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: must be 0 to 65,535; 0 takes a free one")
    if (cert is None) != (key is None):
        raise UserError("--cert and --key belong together; give both")
    if cert is not None and key is not None:
        _check_certificate(str(cert), str(key))
    if is_loopback(host):
        if not token and behind_proxy:
            raise UserError("--no-token: behind a proxy everyone could ask; leave one of the two out")
        return
    if not token:
        raise UserError(f"--host {host[:60]} --no-token: everyone in the network could ask; leave --no-token out")
    if cert is None and not behind_proxy:
        raise UserError(f"--host {host[:60]}: the token would travel in the clear; {_WAYS}")


def _share(models: int) -> int:
    """Threads of each: more than there are cores would wait for each other at every step."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // (models + 1))  # one share is for HTTP, and for whoever else works here


def _check_certificate(cert: str, key: str) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else "not a certificate and its key"
        raise UserError(
            f"--cert {cert[:200]}, --key {key[:200]}: {reason}; give both as PEM, the key without a password"
        ) from None


def run_folder(given: str) -> str:
    """The folder of the run, checked as far as it can be without loading it."""
    from seqloom.runs.folder import RunFolder
    from seqloom.runs.source import is_foreign
    from seqloom.runs.winner import run_of

    path = Path(given)
    if is_foreign(path):
        return given  # converted by the model process
    path = run_of(path)
    RunFolder(path).model_files()
    return str(path)


def index_folder(path: Path) -> str:
    if not (path / "index.json").is_file():
        raise UserError(f"{shown(path)}: not an index; create one: seqloom index FOLDER --out {shown(path)}")
    return str(path)


def _bind(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        why = "not an address of this machine; give one of its own, or 0.0.0.0 for all"
        raise UserError(f"--host {host[:60]}: {why}") from None
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise UserError(f"--host {host[:60]} --port {port}: {error.strerror}; choose another one") from None
    return sock


def _url(binding: Binding, host: str, tls: bool) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http{'s' if tls else ''}://{name}:{binding.sock.getsockname()[1]}/"


def told(address: str, state: State) -> str:
    """One line: where, what, and how much at once."""
    names = [each.name for each in state.models]
    what = ", ".join(names) if names else f"no model, the runs in {state.runs}"
    limits = state.limits
    most = f"{limits.in_flight} requests at once, {limits.queue} waiting"
    return f"serving {what} on {address} (API: {address.partition('#')[0]}v1; {most}; Ctrl-C ends it)"


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = (
            f"seqloom: {self.formatTime(record, '%Y-%m-%dT%H:%M:%S')} {record.levelname.lower()} {record.getMessage()}"
        )
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _log() -> None:
    """To standard error, a line each, without control characters; never a request, a token or a prompt."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("seqloom.serve")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
