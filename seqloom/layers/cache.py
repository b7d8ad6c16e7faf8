"""The key-value cache, the state of attention.

state = (read, dropped, written, ((keys, values) per layer)); keys and values are (B, H, capacity, D)

`read` counts each row's real tokens; slot s of a row holds its token dropped + s, so right padding is simply
overwritten by later tokens. Buffers are allocated ahead and written in place, yet states behave as values:
`written` is shared by all states that share a buffer and counts its filled slots, so a second continuation
of the same state finds its slots taken and copies first.
With a window, a copy omits the tokens that no later token can see, so a state never holds much more than one window,
however long the sequence. `dropped` counts the omitted tokens; None: none.
Buffers may have more rows than the counters: room for rows to come (layers/cache_slots.py).
The counters stay on the CPU, so that reading them does not synchronise with the GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqloom.core.state import State
from seqloom.layers.views import View, even_views, seen


class Cache:
    """One forward pass through the layers: open a state, extend each layer in turn, close with the next state."""

    def __init__(self, state: State, x: Tensor, mask: Tensor | None, window: int = 0) -> None:
        self.rows, self.steps = x.shape[:2]
        self.window = window
        past: Any = state
        if past is None:
            past = torch.zeros(self.rows, dtype=torch.long), None, None, ()
        self.read, self.dropped, self.written, self.layers = past
        self.reads = self.read.tolist()
        self.held = self.read if self.dropped is None else self.read - self.dropped
        starts = self.reads if self.dropped is None else self.held.tolist()
        self.start = max(starts, default=0)
        self.even = min(starts, default=0) == self.start  # all rows continue at the same slot
        self.end = self.start + self.steps
        self.oldest = max(0, min(starts, default=0) - window + 1) if window else 0  # first slot still visible
        self.added = self.steps if mask is None else mask.sum(1).cpu()
        self.taken = self.written is not None and (bool((self.written > self.read).any()) or _is_frozen(self.written))
        self.surplus = self._surplus() if window else None
        self.grown: list[tuple[Tensor, Tensor]] = []
        self._hidden: Tensor | None = None
        self._target: tuple[Tensor, Tensor] | None = None

    def places(self, device: torch.device) -> Tensor:
        """Positions of the new tokens: (T,), or (B, T) where rows differ."""
        first = max(self.reads, default=0)
        if min(self.reads, default=0) == first:
            return torch.arange(first, first + self.steps, device=device)
        return (self.read[:, None] + torch.arange(self.steps)).to(device)

    def views(self, device: torch.device) -> list[View]:
        """What the new tokens attend to, among the slots that `extend` returns."""
        if self.even:
            return even_views(self.start - self.oldest, self.steps, self.window, device)
        slots = self.end - self.oldest
        visible = seen(self._slots(device) - self.oldest, slots, self.window)
        return [View(slice(0, self.steps), slice(0, slots), visible[:, None])]

    def hidden(self, like: Tensor) -> Tensor | None:
        """For one new token per row, what is added to its scores, (B, 1, 1, S): -inf for slots that it cannot see.
        None: it sees all of them."""
        if self.even:
            return None
        if self._hidden is None:
            visible = seen(self._slots(like.device) - self.oldest, self.end - self.oldest, self.window)
            self._hidden = like.new_zeros(visible.shape).masked_fill_(~visible, -torch.inf)[:, None]
        return self._hidden

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append this layer's new keys and values; returns all that it may attend to, old and new."""
        if self.layers:
            old_keys, old_values = self.layers[layer]
            keys, values = self._append(old_keys, keys), self._append(old_values, values)
        self.grown.append((self._keep(keys), self._keep(values)))
        if keys.size(0) > self.rows:
            keys, values = keys[: self.rows], values[: self.rows]
        return keys[:, :, self.oldest : self.end], values[:, :, self.oldest : self.end]

    def has_rooms(self, dtype: torch.dtype) -> bool:
        """Whether `rooms` can be used, for one token per row: nothing to omit, and buffers of this dtype."""
        fits = bool(self.layers) and all(part.dtype == dtype for part in self.layers[0])
        return fits and self.steps == 1 and self.surplus is None and not torch.is_grad_enabled()

    def rooms(self) -> list[tuple[Tensor, Tensor]]:
        """Instead of `extend`, for kernels that write the new keys and values themselves: the buffers of all layers, to
        be written at slot `held` of every row."""
        keys, values = self.layers[0]
        if self._must_copy(keys) or not (keys.is_contiguous() and values.is_contiguous()):
            self.grown = [(self._copy(keys), self._copy(values)) for keys, values in self.layers]
        else:
            self.grown = list(self.layers)
        return self.grown

    def close(self) -> State:
        read, dropped = self.read + self.added, self.dropped
        if self.surplus is not None:
            dropped = self.surplus if dropped is None else dropped + self.surplus
        if torch.is_grad_enabled():  # autograd may need these tensors unchanged: read + 1 forces a copy
            return read, dropped, read + 1, tuple(self.grown)
        written = read.clone() if self.written is None or self.taken or self.moved else self.written
        written.copy_(read)
        return read, dropped, written, tuple(self.grown)

    @property
    def moved(self) -> bool:
        return not self.layers or self.grown[0][0] is not self.layers[0][0]

    def _slots(self, device: torch.device) -> Tensor:
        """Slots of the new tokens, (B, T)."""
        return (self.held[:, None] + torch.arange(self.steps)).to(device)

    def _places_of_one(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Row and slot of one new token per row."""
        if self._target is None:
            self._target = torch.arange(self.rows, device=device), self.held.to(device)
        return self._target

    def _surplus(self) -> Tensor | None:
        """How many of each row's oldest tokens are out of every later window; None unless a copy is needed anyway."""
        if self.layers and not self._must_copy(self.layers[0][0]):
            return None
        surplus = (self.held + self.added - (self.window - 1)).clamp(min=0)
        return surplus if surplus.any() else None

    def _must_copy(self, old: Tensor) -> bool:
        return self.taken or self.end > old.size(2) or torch.is_grad_enabled()

    def _copy(self, old: Tensor) -> Tensor:
        return _with_capacity(old, self.start, self.end)

    def _append(self, old: Tensor, new: Tensor) -> Tensor:
        if old.dtype != new.dtype:
            old = old.to(new.dtype)  # autocast was switched on or off
        learning = torch.is_grad_enabled() and (old.requires_grad or new.requires_grad)
        if self.even and (learning or self.surplus is not None):
            before = old[: self.rows, :, : self.start]
            return torch.cat((before, new), dim=2)  # a new tensor for autograd; `_keep` adds capacity
        if self._must_copy(old):
            old = self._copy(old)
        if self.even:
            (old if old.size(0) == self.rows else old[: self.rows])[:, :, self.start : self.end] = new
            return old
        if self.steps == 1 and not torch.is_grad_enabled():
            old.transpose(1, 2).index_put_(self._places_of_one(old.device), new[:, :, 0])
            return old
        slots = self._slots(old.device)[:, None, :, None].expand_as(new)
        return old.scatter(2, slots, new) if torch.is_grad_enabled() else old.scatter_(2, slots, new)

    def _keep(self, full: Tensor) -> Tensor:
        """What the next state stores: without the surplus, and with spare capacity when continuing a state."""
        if self.surplus is None:
            return full
        size, first = self.window - 1, self.surplus.tolist()
        if min(first) == max(first):
            kept = full[:, :, first[0] : first[0] + size]
        else:
            slots = (self.surplus[:, None] + torch.arange(size)).to(full.device)
            kept = full.gather(2, slots[:, None, :, None].expand(-1, full.size(1), -1, full.size(3)))
        return kept.clone() if torch.is_grad_enabled() or not self.layers else _with_capacity(kept, size, size)


def _is_frozen(tensor: Tensor) -> bool:
    """Created in inference mode and used outside it: readable, but not writable in place."""
    return tensor.is_inference() and not torch.is_inference_mode_enabled()


def _with_capacity(old: Tensor, used: int, needed: int) -> Tensor:
    """A copy with twice the capacity needed now, so that copies stay rare."""
    buffer = old.new_empty(*old.shape[:2], max(64, 2 * needed), old.size(3))
    buffer[:, :, :used] = old[:, :, :used]
    buffer[:, :, used:] = 0  # unwritten slots are masked, but must not be NaN
    return buffer
