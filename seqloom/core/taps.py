"""Taps: named points where a model's activations can be recorded or replaced. Otherwise a tap is the identity.

Recording changes no output, not even by rounding: what is computed by a fast kernel stays so, and what the kernel does
not show is computed beside it. Replacing uses the path on which every activation exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch

from torch import Tensor, nn

Edit = Callable[[Tensor], Tensor]  # what passes a tap -> what passes on


class Tap(nn.Module):
    """The identity, named by its path in the model. Costs two attribute look-ups when not in use."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[Tensor] | None = None
        self.edit: Edit | None = None

    @property
    def watched(self) -> bool:
        """Recorded or replaced."""
        return self.trace is not None or self.edit is not None

    @property
    def edited(self) -> bool:
        return self.edit is not None

    def forward(self, x: Tensor) -> Tensor:
        if self.edit is not None:
            x = self.edit(x)
        if self.trace is not None:
            self.trace.append(x)
        return x


def find_taps(model: nn.Module, pattern: str = "*") -> dict[str, Tap]:
    """The taps whose path matches, in the order of the model."""
    return {path: m for path, m in model.named_modules() if isinstance(m, Tap) and fnmatch(path, pattern)}


@contextmanager
def record(model: nn.Module, pattern: str = "*") -> Iterator[dict[str, list[Tensor]]]:
    """Record every tap whose path matches; yields {path: tensors in the order they passed}."""
    taps = find_taps(model, pattern)
    if not taps:
        raise ValueError(f"no tap matches {pattern!r}")
    traces: dict[str, list[Tensor]] = {path: [] for path in taps}
    before = {path: tap.trace for path, tap in taps.items()}
    for path, tap in taps.items():
        tap.trace = traces[path]
    try:
        yield traces
    finally:
        for path, tap in taps.items():
            tap.trace = before[path]


@contextmanager
def replace(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Pass what passes these taps, by their paths, through functions: to patch it, ablate it or differentiate by it."""
    taps = find_taps(model)
    if missing := [path for path in edits if path not in taps]:
        raise ValueError(f"no tap {missing[0]!r}")
    before = {path: taps[path].edit for path in edits}
    for path, edit in edits.items():
        taps[path].edit = edit
    try:
        yield
    finally:
        for path, old in before.items():
            taps[path].edit = old
