"""Slots: the state of rows that come and go between steps (decode/batcher.py), each in a slot of its own.

A step is computed for all slots of the state, a vacant one included: what it computes there is ignored. Whoever holds
such a state has given up the states it was made from: its tensors may be written in place.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seqloom.core.state import State, concat_states, count_rows, select_rows


class Slots:
    """For states of a fixed size, which are small: a few rows are copied whenever one comes or goes."""

    def join(self, state: State, slots: Sequence[int], new: State) -> State:
        """With the rows of `new` in these slots, which are vacant or follow the last one; None: no slots yet."""
        if state is None:
            return new
        used = count_rows(state)
        order = list(range(max(used, max(slots) + 1)))
        for n, slot in enumerate(slots):
            order[slot] = used + n
        return select_rows(self.concat([state, new]), torch.tensor(order))

    def leave(self, state: State, slots: Sequence[int]) -> State:
        """With these slots vacant: called after every step, so that what was computed there leaves no trace."""
        return state

    def pack(self, state: State, order: Sequence[int]) -> State:
        """Slot n gets what slot order[n] holds. Only vacant slots are overwritten, and the last ones are dropped."""
        return select_rows(state, torch.tensor(order))

    def concat(self, states: Sequence[State]) -> State:
        return concat_states(states)
