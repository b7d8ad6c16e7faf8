"""What nobody foresaw: an unexpected error becomes one line and a file with the details."""

from __future__ import annotations

import logging
import os
import platform
import shlex
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from seqloom.core.version import VERSION

_LIBRARIES = ("torch", "numpy", "pydantic", "typer", "tokenizers", "safetensors", "pyarrow", "pandas", "scikit-learn")
_SILENT = {"PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


@contextmanager
def quiet(debug: bool) -> Iterator[None]:
    """Keep warnings and log lines of libraries from the terminal, also those of processes started here, and what Python
    says of an error where nothing can catch it: what a user has to know, a command says itself. PYTHONWARNINGS and -W
    bring them back."""
    if debug or sys.warnoptions:
        yield
        return
    before = logging.root.manager.disable, sys.unraisablehook, threading.excepthook
    added = {name: value for name, value in _SILENT.items() if name not in os.environ}
    os.environ.update(added)
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = threading.excepthook = _ignore
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        level, sys.unraisablehook, threading.excepthook = before
        logging.disable(level)
        for name in added:
            del os.environ[name]


def _ignore(error: object) -> None: ...


def told(error: BaseException) -> str:
    """One line about an unexpected error, after writing what is known of it to a file."""
    kind = type(error).__name__
    said = " ".join(str(error).split())
    what = f"{kind}: {said[:200]}" if said else kind
    place = _write(_details(error))
    kept = f"; the details are in {place}, please attach it to a report" if place else ""
    return f"internal error, a fault of seqloom and not of yours ({what}){kept}; --debug shows the traceback"


def _details(error: BaseException) -> str:
    lines = [
        "An unexpected error in seqloom: the command, the versions and the traceback.",
        "Of your data there is only what these quote; look through it before you attach it to a report.",
        "",
        f"command:  {shlex.join(['seqloom', *sys.argv[1:]])}",
        f"seqloom:  {VERSION}",
        f"python:   {platform.python_version()} on {platform.platform()}",
        f"packages: {', '.join(_versions())}",
        f"time:     {time.strftime('%Y-%m-%d %H:%M:%S %z')}",
        "",
        *traceback.format_exception(error),
    ]
    return "\n".join(lines)


def _versions() -> list[str]:
    found = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return found


def _write(text: str) -> Path | None:
    """The file, in the current folder or else in that for temporary files; None if neither can be written."""
    stem = f"seqloom-error-{time.strftime('%Y%m%d-%H%M%S')}"
    for folder in (Path(), Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(".txt", f"{stem}-", folder)
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        except OSError:
            continue
        return Path(os.path.relpath(name)) if folder == Path() else Path(name)
    return None
