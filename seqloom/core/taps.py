"""Taps: named points where a model's activations can be recorded. Otherwise a tap is the identity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch

from torch import Tensor, nn


class Tap(nn.Module):
    """The identity, named by its path in the model. Costs one attribute look-up when not recording."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[Tensor] | None = None

    @property
    def watched(self) -> bool:
        return self.trace is not None

    def forward(self, x: Tensor) -> Tensor:
        if self.trace is not None:
            self.trace.append(x)
        return x


@contextmanager
def record(model: nn.Module, pattern: str = "*") -> Iterator[dict[str, list[Tensor]]]:
    """Record every tap whose path matches; yields {path: tensors in the order they passed}."""
    taps = {path: m for path, m in model.named_modules() if isinstance(m, Tap) and fnmatch(path, pattern)}
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
