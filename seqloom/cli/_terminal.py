"""The streams and the size of the terminal that a command was started with, where these are missing or absurd."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

_NARROWEST, _WIDEST = 20, 1000  # columns; help is padded to the width


def prepare() -> None:
    """Give every closed stream a place to go, before a file that is opened takes its number and gets what libraries
    write to the terminal; leave out a width that no terminal has."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                _fill(number)
                setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may not know a character, or a name be none
    said = os.environ.get("COLUMNS", "")
    if said and not (said.isdecimal() and len(said) < 6 and _NARROWEST <= int(said) <= _WIDEST):
        del os.environ["COLUMNS"]


def _fill(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)
