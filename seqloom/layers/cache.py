"""The key-value cache: what attention remembers.

state = (read, written, ((keys, values) per layer)); keys and values are (B, H, room, D)

`read` counts each row's real tokens; slot s of a row holds its s-th token, so right padding is simply
overwritten by what follows. Room is allocated ahead and written in place. A state is still a value:
`written` is shared by all states that share the same room and says how far it is filled, so the
second continuation of one state finds its slots taken and copies first.
The two counters stay on the CPU, where looking at them does not wait for a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqloom.core.state import State


class Cache:
    """One forward pass through the layers: open a state, extend each layer in turn, close to the next state."""

    def __init__(self, state: State, x: Tensor, mask: Tensor | None) -> None:
        rows, self.steps = x.shape[:2]
        past: Any = state
        if past is None:
            self.read, self.written, self.layers = torch.zeros(rows, dtype=torch.long), None, ()
        else:
            self.read, self.written, self.layers = past
        self.starts = self.read.tolist()
        self.start = max(self.starts, default=0)
        self.even = min(self.starts, default=0) == self.start  # all rows continue at the same slot
        self.end = self.start + self.steps
        self.taken = self.written is not None and bool((self.written > self.read).any())
        self.added = self.steps if mask is None else mask.sum(1).cpu()
        self.grown: list[tuple[Tensor, Tensor]] = []

    def places(self, device: torch.device) -> Tensor:
        """The positions of the new tokens: (T,), or (B, T) when rows differ."""
        if self.even:
            return torch.arange(self.start, self.end, device=device)
        return (self.read[:, None] + torch.arange(self.steps)).to(device)

    def visible(self, device: torch.device) -> Tensor | None:
        """Which slots each new token may look at; None where a plain causal (or no) mask says the same."""
        if self.even and (self.start == 0 or self.steps == 1):
            return None
        seen = torch.arange(self.end, device=device) <= self.places(device)[..., None]  # (T, S) or (B, T, S)
        return seen if self.even else seen[:, None]

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add this layer's new keys and values; all it may look at, old and new."""
        if self.layers:
            old_keys, old_values = self.layers[layer]
            keys, values = self._append(old_keys, keys), self._append(old_values, values)
        self.grown.append((keys, values))
        return keys[:, :, : self.end], values[:, :, : self.end]

    def close(self) -> State:
        read = self.read + self.added
        if torch.is_grad_enabled():  # a graph may need these tensors as they are: whoever continues copies first
            return read, read + 1, tuple(self.grown)
        written = read.clone() if self.written is None or self.taken or self.moved else self.written
        written.copy_(read)
        return read, written, tuple(self.grown)

    @property
    def moved(self) -> bool:
        return not self.layers or self.grown[0][0] is not self.layers[0][0]

    def _append(self, old: Tensor, new: Tensor) -> Tensor:
        if self.even and torch.is_grad_enabled() and (old.requires_grad or new.requires_grad):
            return torch.cat((old[:, :, : self.start], new), dim=2)  # autograd keeps every version
        if self.taken or self.end > old.size(2) or torch.is_grad_enabled():
            old = _more_room(old, self.start, self.end)
        if self.even:
            old[:, :, self.start : self.end] = new
            return old
        slots = self.places(old.device)[:, None, :, None].expand_as(new)
        return old.scatter(2, slots, new) if torch.is_grad_enabled() else old.scatter_(2, slots, new)


def _more_room(old: Tensor, used: int, needed: int) -> Tensor:
    """A copy with room for twice what is needed now, so that copying stays rare."""
    room = old.new_empty(*old.shape[:2], max(64, 2 * needed), old.size(3))
    room[:, :, :used] = old[:, :, :used]
    room[:, :, used:] = 0  # a slot never written may be masked, but must not be NaN
    return room
