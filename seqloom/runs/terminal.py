"""Training progress for people: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from seqloom.core.progress import Reporter
from seqloom.core.rows import Json
from seqloom.core.waiting import clear


def _print(line: str) -> None:
    with suppress(OSError):  # a terminal that was closed does not end the training
        print(line, file=sys.stderr, flush=True)


class Plain:
    """Lines on standard error, a few seconds apart."""

    def __init__(self, every: float = 5.0, write: Callable[[str], None] = _print) -> None:
        self.every, self.last, self.write = every, 0.0, write

    def say(self, text: str) -> None:
        self.write(text)

    def update(self, share: float, facts: Json) -> None:
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            self.write(describe(share, facts))

    def close(self) -> None: ...


class Live:
    """One line that updates in place, with rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.console = Console(stderr=True)
        self.bar = Progress(
            BarColumn(24), TextColumn("{task.description}"), console=self.console, transient=True, refresh_per_second=4
        )
        self.task = self.bar.add_task("", total=1.0)
        self.started = False

    def say(self, text: str) -> None:
        clear()
        with suppress(OSError):
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def update(self, share: float, facts: Json) -> None:
        with suppress(OSError):
            if not self.started:
                clear()
                self.started = True
                self.bar.start()
            self.bar.update(self.task, completed=min(1.0, share), description=describe(share, facts))

    def close(self) -> None:
        if self.started:
            self.started = False
            with suppress(OSError):
                self.bar.stop()


def reporter() -> Reporter:
    """Live in a terminal; plain lines when redirected or in CI."""
    return Live() if sys.stderr.isatty() and not os.environ.get("CI") else Plain()


def describe(share: float, facts: Json) -> str:
    """`40%  step 1,200  loss 1.71  perplexity 5.53  2.41 bits/byte  valid loss 1.80  31,000 tokens/s  0:42 left`"""
    share = min(1.0, share)
    if "doing" in facts:
        return f"{share:4.0%}  {facts['doing']}"
    if "preparing" in facts:
        return f"{share:4.0%}  preparing the {facts['preparing']} text, {facts['bytes'] / 1e6:,.0f} MB done"
    parts = [f"{share:4.0%}  step {facts['step']:,}", f"loss {facts['loss']:.4f}"]
    if "perplexity" in facts:
        parts.append(f"perplexity {facts['perplexity']:.2f}")
    if "bits_per_byte" in facts:
        parts.append(f"{facts['bits_per_byte']:.3f} bits/byte")
    if facts.get("valid") is not None:
        parts.append(f"valid {facts['metric'].replace('_', ' ')} {facts['valid']:.4f}")
    parts.append(f"{facts['tokens_per_second']:,.0f} tokens/s")
    left = facts["seconds"] * (1 - share) / share if share > 0 else 0.0
    parts.append(f"{int(left) // 60}:{int(left) % 60:02d} left")
    return "  ".join(parts)
