"""The first words of a command, and of every part that is silent for long: what is being done, on standard error.

In a terminal it is one line that the next output replaces; elsewhere a line of the log.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PATIENCE = 2.0  # seconds that an operation may take before a log mentions it
_ERASE = "\r\x1b[K"
_shown = threading.Event()  # a line in the terminal that is to be replaced


def announce(text: str) -> None:
    """Say what begins; in a terminal, until `clear`."""
    with suppress(OSError):  # the terminal may have been closed
        if sys.stderr.isatty():
            sys.stderr.write(f"{_ERASE}{text} ...")
            _shown.set()
        else:
            sys.stderr.write(f"{text} ...\n")
        sys.stderr.flush()


def before_imports(text: str) -> None:
    """Announce what begins with importing torch, which alone takes a second or more; nothing if that is done."""
    if "torch" not in sys.modules:
        announce(text)


def clear() -> None:
    """Remove the line from the terminal, before anything else is printed."""
    if _shown.is_set():
        _shown.clear()
        with suppress(OSError):
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


@contextmanager
def during(text: str) -> Iterator[None]:
    """Say what takes long, and in a terminal for how long already."""
    over, started = threading.Event(), time.monotonic()

    def tell() -> None:
        if not sys.stderr.isatty():
            if not over.wait(_PATIENCE):
                announce(text)
            return
        while True:
            seconds = int(time.monotonic() - started)
            announce(f"{text}, {seconds} s" if seconds else text)
            if over.wait(1.0):
                return

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        clear()
