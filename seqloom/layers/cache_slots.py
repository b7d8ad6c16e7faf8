"""Slots of the key-value cache: a row joins by writing its keys and values into a slot of buffers that are allocated
ahead, and leaves without a copy.

The buffers have more rows than the counters, and the rows more slots for tokens than are filled; both double when they
are full. See layers/cache.py for the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqloom.core.slots import Slots
from seqloom.core.state import State


class CacheSlots(Slots):
    def join(self, state: State, slots: Sequence[int], new: State) -> State:
        if state is None:
            return new
        past, fresh = _Parts(state), _Parts(new)
        rows = max(len(past.read), max(slots) + 1)
        longest = int(fresh.held.max())
        layers = []
        for old, given in zip(past.layers, fresh.layers, strict=True):
            pair = tuple(_roomy(buffer, rows, longest, past) for buffer in old)
            for buffer, own in zip(pair, given, strict=True):
                for n, (slot, length) in enumerate(zip(slots, fresh.held.tolist(), strict=True)):
                    buffer[slot, :, :length] = own[n, :, :length]
            layers.append(pair)
        index = torch.tensor(slots)
        read = _longer(past.read, rows).index_copy_(0, index, fresh.read)
        held = _longer(past.held, rows).index_copy_(0, index, fresh.held)
        return _state(read, held, tuple(layers))

    def leave(self, state: State, slots: Sequence[int]) -> State:
        past, index = _Parts(state), torch.tensor(slots)
        return _state(past.read.index_fill(0, index, 0), past.held.index_fill(0, index, 0), past.layers)

    def pack(self, state: State, order: Sequence[int]) -> State:
        past, index = _Parts(state), torch.tensor(order)
        lengths = past.held.tolist()
        for pair in past.layers:
            for buffer in pair:
                for slot, origin in enumerate(order):
                    if slot != origin:
                        buffer[slot, :, : lengths[origin]] = buffer[origin, :, : lengths[origin]]
        return _state(past.read[index], past.held[index], past.layers)


class _Parts:
    def __init__(self, state: State) -> None:
        past: Any = state
        self.read, dropped, _, self.layers = past
        self.held = self.read if dropped is None else self.read - dropped


def _state(read: Tensor, held: Tensor, layers: Any) -> State:
    return read, read - held, read.clone(), layers


def _longer(counts: Tensor, rows: int) -> Tensor:
    """A copy with zeros for further rows."""
    return torch.cat((counts, counts.new_zeros(rows - len(counts))))


def _roomy(buffer: Tensor, rows: int, slots: int, past: _Parts) -> Tensor:
    """The buffer itself if these rows and slots fit in, else a larger copy."""
    if buffer.size(0) >= rows and buffer.size(2) >= slots:
        return buffer
    used, filled = len(past.read), int(past.held.max())
    more = [rows if buffer.size(0) >= rows else max(rows, 2 * buffer.size(0))]
    more += [buffer.size(1), buffer.size(2) if buffer.size(2) >= slots else max(64, 2 * slots), buffer.size(3)]
    found = buffer.new_zeros(more)  # unwritten slots are hidden, but must not be NaN
    found[:used, :, :filled] = buffer[:used, :, :filled]
    return found
