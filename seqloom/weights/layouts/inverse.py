"""From our tensors to theirs, by the function that goes the other way: one table of names serves both directions.

A layout's function is run on numbers that are places. What it then yields under one of our names says of every weight
at which place of which of their tensors it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

import torch
from torch import Tensor

from seqloom.core.rows import Json
from seqloom.weights.layouts.layout import Layout
from seqloom.weights.tensors import Taker


def to_theirs(layout: Layout, section: Json, config: Json, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors, by name; what the layout folds into others (`Layout.folded`) is zero.

    `section`: what the layout makes of `config`, their config.json.
    """
    places = _Places(layout)
    for name, place in layout.tensors(section, config, cast(Taker, places)):
        if name in ours:
            places.fill(place, ours[name])
    return places.made


class _Places:
    """Stands for their file: every weight that is asked for is the number of its place, from 1; 0 is none."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.made = layout, dict[str, Tensor]()
        self.spans: list[tuple[int, int, str]] = []  # first and last place, and the tensor
        self.count = 0

    def has(self, name: str) -> bool:
        return True

    def __call__(self, name: str, *shape: int) -> Tensor:
        self.made[name] = torch.zeros(shape)
        if self.layout.folded.fullmatch(name):
            return torch.zeros(shape, dtype=torch.long)
        first, size = self.count + 1, prod(shape)
        self.count += size
        self.spans.append((first, self.count, name))
        return torch.arange(first, first + size).view(shape)

    def fill(self, place: Tensor, values: Tensor) -> None:
        """`values` may have rows that they lack: that of the mask token."""
        values = values.detach()[: len(place)].float().contiguous()
        flat, numbers = place.reshape(-1), values.reshape(-1)
        if flat.numel() != numbers.numel():
            raise ValueError(f"{tuple(values.shape)} does not fit {tuple(place.shape)}")
        for first, last, name in self.spans:
            inside = (flat >= first) & (flat <= last)
            if inside.any():
                self.made[name].view(-1)[flat[inside] - first] = numbers[inside]
