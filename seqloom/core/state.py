"""State: a model's memory of what it has read. Opaque to all but the model that made it.

Every tensor in a state is batch-first, so beam search can pick rows and training can cut gradients
without knowing the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

State = Tensor | tuple["State", ...] | None
Structure = list["Structure"] | str | None  # the structure of a state, as JSON


def map_state(fn: Callable[[Tensor], Tensor], state: State) -> State:
    """Apply `fn` to every tensor, keeping the structure."""
    if state is None:
        return None
    if isinstance(state, tuple):
        return tuple(map_state(fn, part) for part in state)
    return fn(state)


def select_rows(state: State, rows: Tensor) -> State:
    """The states of the given rows, in that order; rows may repeat."""
    return map_state(lambda t: t.index_select(0, rows.to(t.device)), state)


def concat_states(states: Sequence[State]) -> State:
    """The rows of several states of one model, in order, as one state."""
    first = states[0]
    if isinstance(first, tuple):
        return tuple(concat_states(parts) for parts in zip(*states, strict=True))
    return None if first is None else torch.cat(states)  # type: ignore[arg-type]


def count_rows(state: State) -> int:
    """The number of rows of a state; 0 if it holds no tensor."""
    if isinstance(state, tuple):
        return next((rows for part in state if (rows := count_rows(part))), 0)
    return 0 if state is None else state.size(0)


def detach_state(state: State) -> State:
    """The same state, detached from the graph (truncated BPTT)."""
    return map_state(Tensor.detach, state)


def scale_gradient(state: State, factor: float) -> State:
    """The same state; gradients flowing back through it are multiplied by `factor`."""
    return map_state(lambda t: _scaled(t, factor) if t.is_floating_point() else t, state)


def keep_last(read: Tensor, count: int, mask: Tensor | None) -> Tensor:
    """The last `count` real steps of each row of (B, count+T, ...); only the last T steps may be padding."""
    if mask is None:
        return read[:, read.size(1) - count :].clone()  # a view would keep the whole tensor alive
    first = mask.sum(1, keepdim=True)  # (B, 1)
    steps = first + torch.arange(count, device=read.device)
    return read[torch.arange(read.size(0), device=read.device)[:, None], steps]


def flatten_state(state: State, prefix: str = "state") -> dict[str, Tensor]:
    """The tensors by dotted name, for saving; `None` parts are omitted, but keep their index."""
    if isinstance(state, tuple):
        return {k: t for i, part in enumerate(state) for k, t in flatten_state(part, f"{prefix}.{i}").items()}
    return {} if state is None else {prefix: state}


def describe_state(state: State) -> Structure:
    """The structure as JSON, which `unflatten_state` needs in addition to the tensors."""
    if isinstance(state, tuple):
        return [describe_state(part) for part in state]
    return None if state is None else "tensor"


def unflatten_state(structure: Structure, tensors: dict[str, Tensor], prefix: str = "state") -> State:
    if isinstance(structure, list):
        return tuple(unflatten_state(part, tensors, f"{prefix}.{i}") for i, part in enumerate(structure))
    return None if structure is None else tensors[prefix]


def _scaled(t: Tensor, factor: float) -> Tensor:
    found: Tensor = _Scale.apply(t, factor)  # type: ignore[no-untyped-call]
    return found


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.factor, None
