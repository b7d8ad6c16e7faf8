"""Prompts: how a language model gets the state to generate from, and how it continues when its context is full.

A model with a `limit` never reads more: longer prompts are truncated from the left, and when a row's context is full,
generation continues from its last half. A model without a limit simply carries its state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.network import SequenceModel
from seqloom.core.state import State


class Refill:
    """Tells decoding when and how to re-read the context of a model with a limit. Only this class knows the prompts."""

    def __init__(self, model: SequenceModel, prompts: Sequence[Sequence[int]], limit: int) -> None:
        self.model, self.prompts, self.limit = model, prompts, limit
        self.skipped = [max(0, len(prompt) - limit) for prompt in prompts]
        self.due = self._next(range(len(prompts)))  # new tokens at which some row first exceeds the limit

    def __call__(self, rows: Sequence[int], written: Tensor) -> tuple[State, Tensor]:
        """Re-read the prompts `rows` and the tokens written after each (N, W, T): N * W states and last tokens."""
        step = written.size(-1)
        for row in rows:
            length = len(self.prompts[row]) + step
            if length - self.skipped[row] > self.limit:
                self.skipped[row] = length - max(1, self.limit // 2)
        self.due = self._next(rows)
        both = zip(rows, written.tolist(), strict=True)
        return read(
            self.model, [[*self.prompts[row], *text][self.skipped[row] :] for row, texts in both for text in texts]
        )

    def _next(self, rows: Sequence[int]) -> int:
        return min((self.limit + self.skipped[row] - len(self.prompts[row]) + 1 for row in rows), default=0)


def start(model: SequenceModel, prompts: Sequence[Sequence[int]]) -> tuple[State, Tensor, Refill | None]:
    """The state after all but each prompt's last token, those tokens (B,), and a `Refill` if the model has a limit."""
    if model.limit is None:
        return *read(model, prompts), None
    return *read(model, [prompt[-model.limit :] for prompt in prompts]), Refill(model, prompts, model.limit)


def read(model: SequenceModel, texts: Sequence[Sequence[int]]) -> tuple[State, Tensor]:
    """Read all but the last token of each row: the state, and those last tokens."""
    device = model.device
    last = torch.tensor([text[-1] for text in texts], device=device)
    if max(map(len, texts)) == 1:
        return None, last
    context, mask = pad([torch.tensor(text[:-1], dtype=torch.long) for text in texts])
    even = bool(mask.all())
    return model.begin(context.to(device), None if even else mask.to(device)), last
