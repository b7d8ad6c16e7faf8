"""Whole-sequence graphs: a complete sequence and its mask go in, predictions come out; and an encoder with the step of
its decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.rows import Json
from seqloom.core.state import State, flatten_state
from seqloom.export.onnx_run import SOURCE, STEP, compare_steps, described, session
from seqloom.export.onnx_scan import looping, put_loops
from seqloom.export.onnx_step import Tensors, export_step, to_onnx, with_caches
from seqloom.export.source import Source
from seqloom.export.target import check_difference
from seqloom.export.tracing import traceable

CRF_FILE = "crf.npz"


class _Whole(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.model.encode(inputs, mask)
        return found


class _Reader(nn.Module):
    """The source of an encoder-decoder: the parts of the state after it, in order."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        return tuple(flatten_state(self.state(inputs, mask)).values())

    def state(self, inputs: Tensor, mask: Tensor) -> State:
        """That of the first row with a cache that is there, if the decoder has one: it grows from no token."""
        return with_caches(self.model, self.model.begin(inputs, mask), inputs)


def write_whole(source: Source, path: Path) -> Json:
    batch = source.samples.batch
    inputs = batch.inputs if batch.context is None else batch.context
    mask = batch.mask if batch.context is None else batch.context_mask
    mask = torch.ones(inputs.shape[:2], dtype=torch.bool) if mask is None else mask
    facts = whole_graph(source.model, inputs, mask, path)
    if _save_crf(source, path.parent):
        facts["crf"] = CRF_FILE
    return facts


def whole_graph(model: Any, inputs: Tensor, mask: Tensor, path: Path) -> Json:
    """Written, loaded and compared on these inputs and parts of them."""
    with torch.no_grad():
        whole, cut = model.encode(inputs, mask), model.encode(inputs[:, :-1], mask[:, :-1])
    grown = [n for n, (a, b) in enumerate(zip(whole.shape, cut.shape, strict=True)) if a != b and n]
    sizes = {0: "batch", **dict.fromkeys(grown, "length")}
    _export(_Whole(model), (inputs, mask), path, ["outputs"], {"outputs": sizes})
    graph = session(path)
    difference = max(_apart(model, graph, *one) for one in _lengths(inputs, mask))
    facts: Json = {"difference": check_difference(difference, "the graph's outputs"), "compared": "outputs"}
    shape = [sizes.get(axis, size) for axis, size in enumerate(whole.shape)]
    outputs = Tensors(["outputs"], [shape], [str(whole.dtype).removeprefix("torch.")])
    return facts | {"graphs": {path.name: described(_inputs(inputs, mask), outputs)}}


def _export(
    module: _Whole | _Reader,
    example: tuple[Tensor, Tensor],
    path: Path,
    outputs: list[str],
    sizes: dict[str, dict[int, str]] | None = None,
) -> None:
    """Traced on two rows, the second with padding; shorter than what it is compared on later."""
    inputs, mask = (t[:1].repeat(2, *[1] * (t.dim() - 1)) for t in example)
    inputs, mask = inputs[:, : max(3, inputs.size(1) - 2)], mask[:, : max(3, mask.size(1) - 2)].clone()
    mask[1, 2:] = False
    dims = {name: {0: "batch", 1: "length"} for name in ("inputs", "mask")}
    if inputs.dim() > 2 and not inputs.is_floating_point():
        dims["inputs"][2] = "characters"  # of words, after the word itself
    dims |= sizes or {name: {0: "batch"} for name in outputs}
    with torch.no_grad(), traceable(), looping(module.model, inputs) as loops:
        to_onnx(module, (inputs, mask), path, ["inputs", "mask"], outputs, dims, loops=True)
    with torch.no_grad(), traceable():
        put_loops(path, loops, path.parent)


def _inputs(inputs: Tensor, mask: Tensor) -> Tensors:
    last: list[int | str] = list(inputs.shape[2:])
    if last and not inputs.is_floating_point():
        last = ["characters"]
    shapes: list[list[int | str]] = [["batch", "length", *last], ["batch", "length"]]
    return Tensors(["inputs", "mask"], shapes, [str(t.dtype).removeprefix("torch.") for t in (inputs, mask)])


def _lengths(inputs: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The samples, the first row alone and cut, and all with more padding."""
    longer = [F.pad(t, (0,) * (2 * (t.dim() - 2)) + (0, 3)) for t in (inputs, mask)]
    half = max(1, inputs.size(1) // 2)
    return [(inputs, mask), (inputs[:1, :half], mask[:1, :half]), (longer[0], longer[1])]


@torch.no_grad()
def _apart(model: Any, graph: Any, inputs: Tensor, mask: Tensor) -> float:
    if model.reach is not None and inputs.size(1) > model.reach:
        return 0.0
    if not bool(mask.any(1).all()):
        return 0.0
    ours, found = model.encode(inputs, mask), torch.from_numpy(_run(graph, inputs, mask))
    apart = (ours - found).abs()
    if apart.shape[:2] == mask.shape and apart.dim() > 2:
        apart = apart[mask]
    return float(apart.max())


def _run(graph: Any, inputs: Tensor, mask: Tensor) -> np.ndarray:
    wanted = {one.name for one in graph.get_inputs()}
    given = {"inputs": inputs.numpy(), "mask": mask.numpy()}
    found: np.ndarray = graph.run(None, {name: value for name, value in given.items() if name in wanted})[0]
    return found


def _save_crf(source: Source, folder: Path) -> bool:
    """Scores of tags that follow each other; the graph gives those of each tag alone."""
    crf: Any = getattr(getattr(source.model, "head", None), "crf", None)
    if crf is None:
        return False
    first, moves = crf._allowed_scores()
    values = {"first": first, "moves": moves, "last": crf.last}
    np.savez(folder / CRF_FILE, **{name: t.detach().numpy() for name, t in values.items()})
    return True


def write_two_sided(source: Source, folder: Path) -> Json:
    """source.onnx makes the first state of step.onnx from a source and its mask."""
    model, batch = source.model, source.samples.batch
    assert batch.context is not None
    context, inputs = batch.context, batch.inputs
    mask = torch.ones(context.shape[:2], dtype=torch.bool) if batch.context_mask is None else batch.context_mask
    reader = _Reader(model)
    two = inputs[:2] if inputs.size(1) > 2 else inputs[:2].repeat(1, 3, *[1] * (inputs.dim() - 2))
    with torch.no_grad(), traceable():
        state = reader.state(context[:2], mask[:2])
        shorter = reader.state(context[:2, :-1], mask[:2, :-1])
    names = list(flatten_state(state))
    given, made = export_step(model, model, state, two, folder / STEP, shorter)
    sizes = dict(zip(given.names, given.shapes, strict=True))
    dims = {name: {n: size for n, size in enumerate(sizes[name]) if isinstance(size, str)} for name in names}
    _export(reader, (context, mask), folder / SOURCE, names, dims)
    graph = session(folder / SOURCE)
    wanted = {one.name for one in graph.get_inputs()}
    fed = {name: value for name, value in {"inputs": context.numpy(), "mask": mask.numpy()}.items() if name in wanted}
    start = dict(zip(names, graph.run(None, fed), strict=True))
    with torch.no_grad():
        ours = model(inputs, model.begin(context, mask))[0]
    difference = compare_steps(ours, session(folder / STEP), inputs, batch.mask, start)
    kinds = dict(zip(given.names, given.types, strict=True))
    outputs = Tensors(names, [sizes[name] for name in names], [kinds[name] for name in names])
    graphs = {SOURCE: described(_inputs(context, mask), outputs), STEP: described(given, made)}
    return {"difference": difference, "compared": "outputs", "graphs": graphs}
