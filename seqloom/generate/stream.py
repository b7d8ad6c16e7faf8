"""Generate token by token: one path for every model, through `begin` and `forward`.

A model with a `limit` is never asked for more: of a longer prompt it reads the end, and a row that is
full goes on from the last half of what it has read. A model without one simply carries its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.generate.pick import Choice


def stream(
    model: SequenceModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new: int,
    choose: Choice | None = None,
    seed: int | None = None,
) -> Iterator[Tensor]:
    """Yield the next token of every prompt, (B,), `max_new` times."""
    choose, generator = choose or Choice(temperature=0), None
    device = model.device
    if seed is not None:
        generator = torch.Generator(device).manual_seed(seed)
    limit = model.limit
    read = [list(prompt) if limit is None else list(prompt)[-limit:] for prompt in prompts]
    with torch.inference_mode():
        state, last = begin(model, read, device)
    for _ in range(max_new):
        with torch.inference_mode():
            if limit is not None and max(map(len, read)) > limit:
                read = [row if len(row) <= limit else row[-after_full(limit) :] for row in read]
                state, last = begin(model, read, device)
            logits, state = model(last[:, None], state)
            last = choose(logits[:, -1], generator)
        for row, token in zip(read, last.tolist(), strict=True):
            row.append(token)
        yield last


def after_full(limit: int) -> int:
    """How many tokens a model that is full goes on from."""
    return max(1, limit // 2)


def begin(model: SequenceModel, read: Sequence[Sequence[int]], device: torch.device) -> tuple[State, Tensor]:
    """Read all but each row's last token: the state, and those last tokens."""
    last = torch.tensor([row[-1] for row in read], device=device)
    if max(map(len, read)) == 1:
        return None, last
    context, mask = pad([torch.tensor(row[:-1], dtype=torch.long) for row in read])
    even = bool(mask.all())
    return model.begin(context.to(device), None if even else mask.to(device)), last
