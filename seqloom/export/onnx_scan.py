"""Recurrences in a whole-sequence graph: ONNX's Scan, whose body is one step.

While a model is traced, a recurrence leaves a placeholder in the graph and its step beside it; afterwards the
placeholder becomes a Scan with the graph of that step, so the length of the sequence stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqloom.core.state import describe_state, flatten_state, unflatten_state
from seqloom.export.onnx_step import first_state, to_onnx
from seqloom.export.tracing import replaced, untraced
from seqloom.layers import recurrent

DOMAIN = "seqloom"
Body = Callable[..., tuple[Tensor, ...]]  # memory and inputs of a step -> new memory and the output


class Loop(NamedTuple):
    owner: nn.Module  # whose weights the body uses
    body: Body
    memories: int
    example: tuple[Tensor, ...]  # memory and inputs of a step


class Loops:
    """The recurrences that were met while tracing."""

    def __init__(self) -> None:
        self.found: list[Loop] = []

    def run(self, owner: nn.Module, body: Body, memory: list[Tensor], sequences: list[Tensor]) -> tuple[Tensor, ...]:
        """The final memory, and the outputs (B, T, ...) of a loop over the second axis of `sequences`."""
        example = (*memory, *(x[:, 0] for x in sequences))
        self.found.append(Loop(owner, body, len(memory), tuple(x.detach().clone() for x in example)))
        found: tuple[Tensor, ...] = _Placeholder.apply(self, len(self.found) - 1, *memory, *sequences)
        return found


class _Placeholder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loops: Loops, number: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        loop = loops.found[number]
        memory, sequences = list(tensors[: loop.memories]), tensors[loop.memories :]
        outputs = []
        with untraced():
            for t in range(int(sequences[0].shape[1])):
                *memory, out = loop.body(*memory, *(x[:, t] for x in sequences))
                outputs.append(out)
            return *memory, torch.stack(outputs, 1)

    @staticmethod
    def symbolic(graph: Any, loops: Loops, number: int, *tensors: Any) -> Any:
        count = loops.found[number].memories + 1
        made = graph.op(f"{DOMAIN}::Loop", *tensors, number_i=number, outputs=count)
        for value, before in zip(made, tensors[: count - 1], strict=False):
            value.setType(before.type())
        made[-1].setType(tensors[count - 1].type().with_sizes([None, None, None]))
        return made


@contextmanager
def looping(model: Any, inputs: Tensor) -> Iterator[Loops]:
    """Inside the block, recurrences of the model leave placeholders: those of cells, and those of causal models whose
    state does not grow as a whole."""
    loops = Loops()

    plain = recurrent.unroll

    def unrolled(cell: Any, x: Tensor, memory: Any, mask: Tensor | None) -> tuple[Tensor, Any]:
        if torch.jit.is_tracing():
            return _cell(loops, cell, x, memory, mask)
        return plain(cell, x, memory, mask)

    with replaced(recurrent, "unroll", unrolled):
        backbone = getattr(model, "backbone", None)
        if backbone is None or backbone.kind != "causal" or not _is_fixed(backbone, model, inputs):
            yield loops
        else:
            with replaced(type(backbone), "encode", lambda own, x, mask=None: _stack(loops, own, x, mask)):
                yield loops


def _is_fixed(backbone: Any, model: Any, inputs: Tensor) -> bool:
    """Whether its state has the same size however much was read, and a step can be masked."""
    x = model.embed(inputs[:2])
    states = [first_state(backbone, x), backbone(x[:, :1])[1]]
    first, later = (flatten_state(state) for state in states)
    return bool(first) and [t.shape for t in first.values()] == [t.shape for t in later.values()]


def _cell(loops: Loops, cell: Any, x: Tensor, memory: Any, mask: Tensor | None) -> tuple[Tensor, Any]:
    def step(*parts: Tensor) -> tuple[Tensor, ...]:
        before, given = parts[: cell.memories], parts[cell.memories :]
        new = cell.step(given[0], before)
        if mask is not None:
            new = tuple(torch.where(given[1][:, None], a, b) for a, b in zip(new, before, strict=True))
        return *new, new[0]

    *after, hidden = loops.run(cell, step, list(memory), [cell.project(x), *([] if mask is None else [mask])])
    return hidden, tuple(after)


def _stack(loops: Loops, backbone: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """A whole backbone, step by step."""
    with untraced():
        state = first_state(backbone, x.detach()[:2])
        structure, names = describe_state(state), list(flatten_state(state))
        first = [t[:1].detach().clone() for t in flatten_state(state).values()]
    rows = [t.expand(x.shape[0], *t.shape[1:]) for t in first]
    real = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask

    def step(*parts: Tensor) -> tuple[Tensor, ...]:
        *before, here, one = parts
        known = unflatten_state(structure, dict(zip(names, before, strict=True)))
        hidden, new = backbone(here[:, None], known)
        after = flatten_state(new).values()
        return *(_where(one, a, b) for a, b in zip(after, before, strict=True)), hidden[:, 0]

    return loops.run(backbone, step, rows, [x, real])[-1]


def _where(real: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Padding changes no memory."""
    return torch.where(real.view(-1, *[1] * (new.dim() - 1)), new, old)


class _Body(nn.Module):
    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.owner, self.body = loop.owner, loop.body

    def forward(self, *parts: Tensor) -> tuple[Tensor, ...]:
        return self.body(*parts)


def put_loops(path: Path, loops: Loops, folder: Path) -> None:
    """Replace the placeholders in the graph by Scans."""
    import onnx

    whole = onnx.load(str(path))
    for node in [node for node in whole.graph.node if node.domain == DOMAIN]:
        number = node.attribute[0].i
        body = _graph_of(loops.found[number], number, folder)
        scan = onnx.helper.make_node(
            "Scan",
            list(node.input),
            list(node.output),
            body=body,
            num_scan_inputs=len(node.input) - loops.found[number].memories,
            scan_input_axes=[1] * (len(node.input) - loops.found[number].memories),
            scan_output_axes=[1],
        )
        node.CopyFrom(scan)
    kept = [one for one in whole.opset_import if one.domain != DOMAIN]
    del whole.opset_import[:]
    whole.opset_import.extend(kept)
    onnx.save(whole, str(path))


def _graph_of(loop: Loop, number: int, folder: Path) -> Any:
    import onnx

    path = folder / f"body-{number}.onnx"
    given = [f"given_{n}" for n in range(len(loop.example))]
    made = [f"made_{n}" for n in range(loop.memories + 1)]
    to_onnx(_Body(loop), loop.example, path, given, made, {name: {0: "batch"} for name in (*given, *made)})
    found = onnx.load(str(path))
    path.unlink()
    known = {one.name: one for one in found.graph.input}
    inputs = [known.get(name) or _unused(name, t) for name, t in zip(given, loop.example, strict=True)]
    del found.graph.input[:]
    found.graph.input.extend(inputs)
    return onnx.compose.add_prefix(found, f"loop_{number}/").graph


def _unused(name: str, example: Tensor) -> Any:
    """An input that the exporter has left out."""
    import onnx

    kind = onnx.helper.np_dtype_to_tensor_dtype(example.numpy().dtype)
    return onnx.helper.make_tensor_value_info(name, kind, ["batch", *example.shape[1:]])
