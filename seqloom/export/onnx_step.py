"""One-step graphs: the inputs of one position and a state go in, the outputs and the next state come out.

torch's exporter fixes the number of steps of a recurrence, so the graph has one, and whoever uses it has the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.state import State, Structure, describe_state, flatten_state, map_state, unflatten_state
from seqloom.export.target import RUN_ITSELF, refused
from seqloom.export.tracing import OPSET, traceable, untraced

Call = Callable[[Tensor, State], tuple[Tensor, State]]


class Tensors(NamedTuple):
    """Names and shapes of a graph's inputs or outputs; a dimension that varies has a name."""

    names: list[str]
    shapes: list[list[int | str]]
    types: list[str]


class Step(nn.Module):
    """`names`: of the parts of the state."""

    def __init__(self, model: nn.Module, call: Call, structure: Structure, names: list[str]) -> None:
        super().__init__()
        self.model, self.call, self.structure, self.names = model, call, structure, names

    def forward(self, inputs: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        out, new = self.call(inputs, unflatten_state(self.structure, dict(zip(self.names, parts, strict=True))))
        return out, *flatten_state(new).values()


def export_step(
    model: Any, call: Call, state: State, inputs: Tensor, path: Path, shorter: State = None
) -> tuple[Tensors, Tensors]:
    """`state`: the first one, of at least two rows; `inputs`: (B, T, ...), T at least 3, to see which sizes change;
    `shorter`: the first state after a source that is shorter, whose size varies too."""
    with torch.no_grad(), traceable():
        later = state
        for n in range(2):
            later = call(inputs[:, n : n + 1], later)[1]
        first, second = flatten_state(state), flatten_state(later)
        names = list(first)
        if list(second) != names:
            raise refused("onnx", "its state changes its structure as it reads", RUN_ITSELF)
        other = flatten_state(shorter) or first
        axes = {name: _axes(first[name], second[name], "past") | _axes(first[name], other[name], "length")
                for name in names}  # fmt: skip
        step = Step(model, call, describe_state(later), names)
        example = inputs[:, 2:3]
        outputs = ["outputs", *(f"next.{name}" for name in names)]
        dims = {"inputs": {0: "batch"}, "outputs": {0: "batch"}, **axes}
        renamed = {"past": "past_and_1"}
        dims |= {f"next.{name}": {axis: renamed.get(size, size) for axis, size in of.items()}
                 for name, of in axes.items()}  # fmt: skip
        to_onnx(step, (example, *second.values()), path, ["inputs", *names], outputs, dims)
        given = _described(["inputs", *names], [example, *second.values()], dims)
        out = step(example, *second.values())
        return given, _described(outputs, list(out), dims)


def _axes(a: Tensor, b: Tensor, name: str) -> dict[int, str]:
    """The sizes that vary: the rows, and those in which the tensors differ."""
    grown = [n for n, (one, other) in enumerate(zip(a.shape, b.shape, strict=True)) if one != other]
    return {0: "batch", **{axis: name for axis in grown if axis}}


def _described(names: list[str], tensors: list[Tensor], dims: dict[str, dict[int, str]]) -> Tensors:
    shapes = [
        [dims.get(name, {}).get(axis, size) for axis, size in enumerate(t.shape)]
        for name, t in zip(names, tensors, strict=True)
    ]
    return Tensors(names, shapes, [str(t.dtype).removeprefix("torch.") for t in tensors])


def to_onnx(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    dims: dict[str, dict[int, str]],
    *,
    loops: bool = False,
) -> None:
    """The exporter that traces: it is a tenth as slow as the one that compiles, and holds more of our models.
    `loops`: it may have placeholders for recurrences."""
    torch.onnx.export(
        module.eval(),
        example,
        str(path),
        input_names=inputs,
        output_names=outputs,
        dynamic_axes={name: of for name, of in dims.items() if name in {*inputs, *outputs}},
        opset_version=OPSET,
        dynamo=False,
        autograd_inlining=not loops,
    )


def first_state(call: Any, inputs: Tensor) -> State:
    """The state of each row before it has read anything: what is left after a token that is padding."""
    with torch.no_grad(), traceable():
        mask = torch.zeros((len(inputs), 1), dtype=torch.bool)
        found: State = call(inputs[:, :1], None, mask)[1]
        return found


def with_caches(model: Any, state: State, inputs: Tensor) -> State:
    """A state whose parts are all there: what is None before the first token is what no token leaves in one row."""
    if not isinstance(state, tuple) or None not in state:
        return state
    with untraced():
        one = map_state(lambda t: t.detach()[:1], state)
        found: Any = model(torch.zeros_like(inputs)[:1, :0], one)[1]

    def spread(t: Tensor) -> Tensor:
        return t.expand(inputs.shape[0], *t.shape[1:])

    return tuple(map_state(spread, new) if old is None else old for old, new in zip(state, found, strict=True))


def save_start(state: State, path: Path) -> None:
    """One row of the first state, by name."""
    parts: Any = {name: t[:1].detach().numpy() for name, t in flatten_state(state).items()}
    np.savez(path, **parts)


def run_steps(session: Any, inputs: Tensor, state: dict[str, np.ndarray]) -> np.ndarray:
    """The outputs at every position, (B, T, ...), with the loop that the card shows."""
    wanted = {one.name for one in session.get_inputs()}
    names, outputs = [one.name for one in session.get_outputs()][1:], []
    for t in range(inputs.size(1)):
        given = {"inputs": inputs[:, t : t + 1].numpy(), **state}
        out, *parts = session.run(None, {name: value for name, value in given.items() if name in wanted})
        state = state | {name.removeprefix("next."): part for name, part in zip(names, parts, strict=True)}
        outputs.append(out)
    return np.concatenate(outputs, axis=1)
