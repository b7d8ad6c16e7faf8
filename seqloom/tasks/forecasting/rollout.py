"""Autoregressive rollout, block by block: each forecast is fed back as if it were the actual values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.core.backbone import at_end
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, select_rows
from seqloom.tasks.forecasting.windows import Layout, Windows

Feed = Callable[[Tensor, int], Tensor]  # outputs (B, block, N, size) of a block, its number -> values to feed back


def read_history(model: SequenceModel, batch: Windows) -> tuple[Tensor | None, Tensor, State]:
    """Outputs at every position of the history (None if the model encodes it as a source), outputs at its last
    position, and the state after it."""
    assert batch.context is not None
    if model.joins:
        outputs, state = model(batch.context, None, batch.context_mask)
        return outputs, at_end(outputs, batch.context_mask), state
    state = model.begin(batch.context, batch.context_mask)
    outputs, state = model(batch.inputs[:, :1], state)
    return None, outputs[:, 0], state


def read_forced(model: SequenceModel, batch: Windows) -> tuple[Tensor | None, Tensor]:
    """Teacher forcing: outputs at every position of the history and at those of `inputs`, which hold actual values."""
    assert batch.context is not None
    if model.joins and batch.context_mask is None:  # one sequence, one forward pass
        outputs, _ = model(torch.cat((batch.context, batch.inputs[:, 1:]), dim=1))
        length = batch.context.size(1)
        return outputs[:, :length], outputs[:, length - 1 :]
    if not model.joins:
        return None, model(batch.inputs, model.begin(batch.context, batch.context_mask))[0]
    before, last, state = read_history(model, batch)
    if batch.inputs.size(1) == 1:
        return before, last[:, None]
    return before, torch.cat((last[:, None], model(batch.inputs[:, 1:], state)[0]), dim=1)


def read_mixed(
    model: SequenceModel, batch: Windows, layout: Layout, predict: Callable[[Tensor], Tensor], share: float
) -> tuple[Tensor | None, Tensor]:
    """Scheduled sampling (Bengio et al. 2015): for every block, a share of the rows read the model's own prediction of
    the previous block, the others the actual values; missing values are always predicted."""
    before, last, state = read_history(model, batch)
    actual = batch.targets[:, :: layout.block]

    def feed(outputs: Tensor, number: int) -> Tensor:
        own, truth = predict(outputs), actual[:, number].to(outputs.dtype)
        chosen = torch.rand(len(own), 1, 1, device=own.device) < share
        return torch.where(chosen | truth.isnan(), own, truth)

    return before, torch.stack(follow(model, batch.inputs, layout, last, state, feed), dim=1)


def run_on(model: SequenceModel, batch: Windows, layout: Layout, feed: Feed, copies: int = 1) -> Tensor:
    """Outputs of every block, (B * copies, blocks, block, N, size), each fed back before the next.

    `copies`: continuations of each row, side by side; the history is read once.
    """
    _, outputs, state = read_history(model, batch)
    inputs = batch.inputs
    if copies > 1:
        rows = torch.arange(len(outputs), device=outputs.device).repeat_interleave(copies)
        outputs, state, inputs = outputs[rows], select_rows(state, rows), inputs[rows]
    return torch.stack(follow(model, inputs, layout, outputs, state, feed), dim=1)


def follow(
    model: SequenceModel, inputs: Tensor, layout: Layout, outputs: Tensor, state: State, feed: Feed
) -> list[Tensor]:
    """Outputs of all blocks, beginning with `outputs`, those of the first."""
    found, block = [outputs], layout.block
    for number, place in enumerate(range(1, inputs.size(1), block)):
        values = feed(found[-1], number)
        step = with_values(inputs[:, place : place + block], values, layout)
        outputs, state = model(step, state)
        found.append(outputs[:, -1])
    return found


def with_values(inputs: Tensor, values: Tensor, layout: Layout) -> Tensor:
    """The inputs with their values replaced by these (B, block, N)."""
    parts = [values]
    if layout.flags:
        parts.append(torch.ones_like(values))
    rest = inputs[..., layout.targets * len(parts) :]
    return torch.cat((*(part.to(inputs.dtype) for part in parts), rest), dim=-1)
