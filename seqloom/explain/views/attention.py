"""Attention weights of every layer and head, their rollout, and how they compare with the influence of the inputs.

Works through taps alone: "weights" are those of causal self-attention, "alignment" those of attention to a whole
sequence, the own one or a source. H heads, T queries, S positions attended to; weights are (H, T, S).
Rollout (Abnar & Zuidema 2020): the product over layers of (A + I) / 2, A the mean over the heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.explain.passes import Passed, Reading, labels, layer_name, read, side
from seqloom.explain.view import View

REMARK = (
    "Attention is not attribution: weights show where a layer reads from, not what the output depends on; that is what "
    "the influence map measures."
)
ROLLOUT = "rollout"


@dataclass
class Map:
    """The weights of a layer, and the input positions of its rows and columns."""

    name: str
    kind: str  # self, source, query (one for the whole sequence) or pooling
    weights: Tensor  # (H, T, S)
    row: int  # first position of the rows
    column: int

    @property
    def square(self) -> bool:
        return self.kind == "self" and self.row == self.column and self.weights.size(1) == self.weights.size(2)


def attention(model: SequenceModel, instance: Instance, *, influence: np.ndarray | None = None) -> View:
    """`influence` (O, P): of inputs on outputs, to correlate the weights with."""
    maps = find_maps(model, read(model, instance, lambda path: path.endswith((".weights", ".alignment"))))
    if not maps:
        raise UserError("this model has no attention weights; look at its memory, gradients or influence instead")
    tensors = {part.name: part.weights.numpy() for part in maps}
    rolled = rollouts(maps, instance)
    facts: Json = {
        "remark": REMARK,
        "layers": {part.name: _about(part, instance) for part in [*maps, *rolled]},
    }
    rows = [row for part in maps for row in _heads(part, instance, influence)]
    if instance.parts and len(rolled) > 1:
        facts["rollout"] = "each side by itself: what crosses from one side to the other is in the maps of the source"
    if influence is not None:
        found = {part.name: correlation(part, part.weights.mean(0), instance, influence) for part in [*maps, *rolled]}
        facts["correlation"] = found
    return View("attention", tensors | {part.name: part.weights[0].numpy() for part in rolled}, rows, facts)


def find_maps(model: SequenceModel, reading: Reading) -> list[Map]:
    """Every layer and hop, in the order of the model; calls that continue each other are one map."""
    maps: list[Map] = []
    for path, found in reading.passed.items():
        pooled = path.endswith("pooling.weights")
        hops: dict[int, list[Map]] = {}
        for passed in found:
            weights = [passed.tensors[0][:, None]] if pooled else passed.over_time()
            for hop, part in enumerate(weights):
                name = "pooling" if pooled else layer_name(path) + (f", hop {hop + 1}" if len(weights) > 1 else "")
                hops.setdefault(hop, []).append(_placed(name, part.float().cpu(), passed, model, reading, pooled))
        maps += [_joined(parts) for parts in hops.values()]
    return [part for part in maps if part.kind != "pooling" or np.ptp(part.weights.numpy()) > 0]  # else a plain mean


def rollouts(maps: list[Map], instance: Instance) -> list[Map]:
    """The product of the self-attention layers over the same positions; (1, T, T) each."""
    stacks: dict[int, list[Map]] = {}
    for part in maps:
        if part.square:
            stacks.setdefault(part.row, []).append(part)
    found = []
    for first, layers in stacks.items():
        size = layers[0].weights.size(1)
        product = torch.eye(size)
        for layer in layers:
            if layer.weights.size(1) == size:
                product = (layer.weights.mean(0) + torch.eye(size)) / 2 @ product
        name = ROLLOUT if len(stacks) == 1 else f"{ROLLOUT}, {side(instance, first)}"
        found.append(Map(name, "self", product[None], first, first))
    return found


def correlation(part: Map, weights: Tensor, instance: Instance, influence: np.ndarray) -> float | None:
    """Spearman's, of weights (T, S) and absolute influence, per output over the positions that it can attend to, and
    averaged; None: too few of them."""
    found = []
    for output, wanted in zip(instance.outputs, influence, strict=True):
        row = _row_of(part, weights, output.at)
        if row is None:
            continue
        cells = np.abs(wanted[part.column : part.column + len(row)])
        row = row[: len(cells)]
        seen = row > 0
        if seen.sum() > 2 and np.ptp(row[seen]) > 0 and np.ptp(cells[seen]) > 0:
            found.append(float(np.corrcoef(_ranks(row[seen]), _ranks(cells[seen]))[0, 1]))
    return float(np.mean(found)) if found else None


def _row_of(part: Map, weights: Tensor, at: int | None) -> np.ndarray | None:
    """What an output attends to: the row of its position; of a whole sequence, the mean over the rows."""
    if at is None or part.kind in ("pooling", "query"):
        return np.asarray(weights.mean(0))
    row = at - part.row
    return np.asarray(weights[row]) if 0 <= row < len(weights) else None


def _placed(name: str, weights: Tensor, passed: Passed, model: SequenceModel, reading: Reading, pooled: bool) -> Map:
    call, (rows, columns) = reading.calls[passed.call], weights.shape[-2:]
    if pooled:
        return Map(name, "pooling", weights, call.first, call.first)
    if passed.path.endswith("weights"):  # causal: columns end where the rows end
        return Map(name, "self", weights, call.first, call.first + call.length - columns)
    if model.kind == "encoder-decoder" and passed.call > 0:
        return Map(name, "source", weights, call.first, reading.calls[0].first)
    return Map(name, "self" if rows == call.length else "query", weights, call.first, call.first)


def _joined(parts: list[Map]) -> Map:
    """One map of calls that continue each other."""
    first, column = parts[0], min(part.column for part in parts)
    if len(parts) == 1 or first.kind in ("pooling", "query"):
        return first
    stop = max(part.column + part.weights.size(2) for part in parts)
    ends = [(part.column - column, stop - part.column - part.weights.size(2)) for part in parts]
    rows = [pad(part.weights, end) for part, end in zip(parts, ends, strict=True)]
    return Map(first.name, first.kind, torch.cat(rows, dim=1), first.row, column)


def _about(part: Map, instance: Instance) -> Json:
    heads, rows, columns = part.weights.shape
    about: Json = {"kind": part.kind, "heads": heads, "row": part.row, "column": part.column}
    one = part.kind in ("pooling", "query")
    about["rows"] = [part.kind] * rows if one else labels(instance, part.row, part.row + rows)
    about["columns"] = labels(instance, part.column, part.column + columns)
    about["sides"] = ["" if one else side(instance, part.row), side(instance, part.column)]
    return about


def _heads(part: Map, instance: Instance, influence: np.ndarray | None) -> list[Row]:
    """A row of figures for every head."""
    about, found = _about(part, instance), []
    for head, weights in enumerate(part.weights):
        entropy = -torch.special.xlogy(weights, weights).sum(-1).mean()
        largest = int(weights.argmax())
        at = divmod(largest, weights.size(1))
        row: Row = {"layer": part.name, "head": head + 1, "entropy": float(entropy), "distance": None}
        if part.kind == "self":
            queries = torch.arange(weights.size(0)) + part.row
            keys = torch.arange(weights.size(1)) + part.column
            row["distance"] = float((weights * (queries[:, None] - keys).abs()).sum(-1).mean())
        row |= {"largest": float(weights.flatten()[largest])}
        row |= {"from": about["rows"][at[0]], "to": about["columns"][at[1]]}
        if influence is not None:
            row["correlation"] = correlation(part, weights, instance, influence)
        found.append(row)
    return found


def _ranks(x: np.ndarray) -> np.ndarray:
    """Average ranks; equal values share theirs."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse])
