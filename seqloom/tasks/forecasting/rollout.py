"""Forecasts, block after block: what a model says of the next points is read as if they had come."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.core.backbone import at_end
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, select_rows
from seqloom.tasks.forecasting.windows import Layout, Windows

Feed = Callable[[Tensor, int], Tensor]  # what was said of a block (B, block, N, size), its number -> what is read of it


def read_history(model: SequenceModel, batch: Windows) -> tuple[Tensor | None, Tensor, State]:
    """What is said at every position of the history (None: the model reads it as a source), at its last, and the
    state after it."""
    assert batch.context is not None
    if model.joins:
        said, state = model(batch.context, None, batch.context_mask)
        return said, at_end(said, batch.context_mask), state
    state = model.begin(batch.context, batch.context_mask)
    said, state = model(batch.inputs[:, :1], state)
    return None, said[:, 0], state


def read_forced(model: SequenceModel, batch: Windows) -> tuple[Tensor | None, Tensor]:
    """What is said at every position of the history, and at each of `inputs`, which hold what came."""
    assert batch.context is not None
    if model.joins and batch.context_mask is None:  # one sequence, read at once
        said, _ = model(torch.cat((batch.context, batch.inputs[:, 1:]), dim=1))
        length = batch.context.size(1)
        return said[:, :length], said[:, length - 1 :]
    if not model.joins:
        return None, model(batch.inputs, model.begin(batch.context, batch.context_mask))[0]
    before, last, state = read_history(model, batch)
    if batch.inputs.size(1) == 1:
        return before, last[:, None]
    return before, torch.cat((last[:, None], model(batch.inputs[:, 1:], state)[0]), dim=1)


def read_mixed(
    model: SequenceModel, batch: Windows, layout: Layout, guess: Callable[[Tensor], Tensor], share: float
) -> tuple[Tensor | None, Tensor]:
    """The same of every block of the future, when a share of rows read the guess of the block before, and others what
    came (Bengio et al. 2015); what is missing is guessed."""
    before, last, state = read_history(model, batch)
    came = batch.targets[:, :: layout.block]

    def feed(said: Tensor, number: int) -> Tensor:
        own, truth = guess(said), came[:, number].to(said.dtype)
        chosen = torch.rand(len(own), 1, 1, device=own.device) < share
        return torch.where(chosen | truth.isnan(), own, truth)

    return before, torch.stack(follow(model, batch.inputs, layout, last, state, feed), dim=1)


def run_on(model: SequenceModel, batch: Windows, layout: Layout, feed: Feed, copies: int = 1) -> Tensor:
    """What is said of every block, (B * copies, blocks, block, N, size), when each is read before the next is asked.

    `copies`: so many continuations of each row, side by side, which read the history once.
    """
    _, said, state = read_history(model, batch)
    inputs = batch.inputs
    if copies > 1:
        rows = torch.arange(len(said), device=said.device).repeat_interleave(copies)
        said, state, inputs = said[rows], select_rows(state, rows), inputs[rows]
    return torch.stack(follow(model, inputs, layout, said, state, feed), dim=1)


def follow(
    model: SequenceModel, inputs: Tensor, layout: Layout, said: Tensor, state: State, feed: Feed
) -> list[Tensor]:
    """The blocks after the first, of which `said` is known, among them."""
    found, block = [said], layout.block
    for number, place in enumerate(range(1, inputs.size(1), block)):
        values = feed(found[-1], number)
        step = with_values(inputs[:, place : place + block], values, layout)
        said, state = model(step, state)
        found.append(said[:, -1])
    return found


def with_values(inputs: Tensor, values: Tensor, layout: Layout) -> Tensor:
    """The same inputs, as if these values (B, block, N) had come."""
    parts = [values]
    if layout.flags:
        parts.append(torch.ones_like(values))
    rest = inputs[..., layout.targets * len(parts) :]
    return torch.cat((*(part.to(inputs.dtype) for part in parts), rest), dim=-1)
