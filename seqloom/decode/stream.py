"""Generate token by token, for any model, through `begin` and `forward`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.decode.pick import Choice, seeded
from seqloom.decode.prompts import Refill, start


def stream(
    model: SequenceModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new: int,
    choose: Choice | None = None,
    seed: int | None = None,
) -> Iterator[Tensor]:
    """Yield the next token of every prompt, (B,), `max_new` times."""
    with torch.inference_mode():
        state, last, refill = start(model, prompts)
    yield from draw(model, state, last, max_new=max_new, choose=choose, seed=seed, refill=refill)


def draw(
    model: SequenceModel,
    state: State,
    last: Tensor,
    *,
    max_new: int,
    choose: Choice | None = None,
    seed: int | None = None,
    refill: Refill | None = None,
) -> Iterator[Tensor]:
    """Yield the next token of every row, (B,), `max_new` times, from a state and the tokens (B,) it has yet to read.

    `refill`: for models with a limit (see prompts.py).
    """
    choose, generator = choose or Choice(temperature=0), seeded(seed, last.device)
    written: list[Tensor] = []
    for step in range(max_new):
        with torch.inference_mode():
            if refill is not None and step >= refill.due:
                state, last = refill(range(last.size(0)), torch.stack(written, dim=-1)[:, None])
            logits, state = model(last[:, None], state)
            last = choose(logits[:, -1], generator)
        if refill is not None:
            written.append(last)
        yield last
