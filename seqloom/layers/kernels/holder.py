"""A backbone that keeps compiled programs of its weights, and forgets them when the weights may be others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch

from seqloom.core.backbone import Backbone
from seqloom.core.rows import Json
from seqloom.core.taps import Tap
from seqloom.layers.kernels.engine import runner, say_slower
from seqloom.layers.kernels.program import Unsupported, room_of


class Compiled(Backbone):
    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[tuple[int, int], Any] = {}
        self.taps: list[Tap] = []

    def program(self, build: Callable[[int, int], Any], rows: int) -> Any:
        """What `build` makes for this number of threads and of rows, made once; None: there are no kernels for this."""
        if runner() is None:
            return None
        key = torch.get_num_threads(), room_of(rows)
        if key not in self.programs:
            others = {other: program for other, program in self.programs.items() if other[0] == key[0]}
            self.programs = others | {key: _built(build, *key)}
        return self.programs[key]

    @property
    def needs_modules(self) -> bool:
        """Whether the modules themselves must run: for gradients, recorded taps, or autocast."""
        autocast = torch.is_autocast_enabled("cpu")
        return autocast or self.training or torch.is_grad_enabled() or any(tap.watched for tap in self.taps)

    def forget(self) -> None:
        self.programs.clear()

    def train(self, mode: bool = True) -> Self:
        self.forget()
        return super().train(mode)

    def __getstate__(self) -> Json:
        return {**super().__getstate__(), "programs": {}}  # they refer to this model's weights, not the copy's

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        self.forget()
        super()._load_from_state_dict(*arguments, **options)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self.forget()  # the weights may be replaced
        return super()._apply(fn, recurse)


def _built(build: Callable[[int, int], Any], threads: int, room: int) -> Any:
    try:
        return build(threads, room)
    except Unsupported as reason:
        say_slower(str(reason))
        return None
