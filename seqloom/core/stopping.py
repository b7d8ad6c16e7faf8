"""The signals that ask a process to end: Ctrl-C, kill, and a terminal that was closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """By a signal. What was being written is undone, as it is on Ctrl-C."""


_received = signal.SIGINT  # the last one; SIGINT also stands for an interrupt that no signal caused


def stop_signals() -> tuple[int, ...]:
    """Without SIGHUP where it is ignored, as nohup asks for."""
    closed = () if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *closed)


@contextmanager
def stoppable() -> Iterator[None]:
    """Every signal to stop is an exception in the main thread; a second one ends the process at once."""
    global _received
    _received = signal.SIGINT  # not that of an earlier command in this process
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, _stop) for number in stop_signals() if main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    global _received
    _received = signal.Signals(number)
    for other in stop_signals():
        signal.signal(other, signal.SIG_DFL)
    raise Stopped


def ending() -> tuple[str, int]:
    """How a command that was stopped ends: in words, and its exit code."""
    said = "interrupted" if _received == signal.SIGINT else f"stopped by {_received.name}"
    return said, 128 + _received
