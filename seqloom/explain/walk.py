"""A walk through one attention head for one query, number by number: query, keys, values, scores, weights, context.

    e_s = score(q, k_s),  a = align(e),  c = sum_s a_s v_s        S positions that the query can see, D values each

The numbers are those that pass the taps of the model. For any attention with taps: self-attention, causal or not,
attention to a source, the general attention model, and self-attention without parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.taps import find_taps
from seqloom.explain.passes import Passed, Reading, labels, read, side
from seqloom.explain.places import COUNTED, EMBEDDED
from seqloom.explain.view import View
from seqloom.explain.views.attention import Map, find_maps

PARTS = ("query", "keys", "values", "scores", "context")
WEIGHTS = ("weights", "alignment")


@dataclass
class Head:
    """Query q (D,), keys (S, D), values (S, D), scores (S,), weights (S,), context (D,)."""

    query: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    context: Tensor


def walk(model: SequenceModel, instance: Instance, layer: int = 0, head: int = 0, position: int = -1) -> View:
    """`layer`: in the order of the attention view; `position`: of the query, among those of the layer."""
    stops = _stops(model)
    if not stops and not find_taps(model, EMBEDDED):
        raise UserError(COUNTED)
    if not stops:
        raise UserError("this model has no attention to walk through; look at its memory or influence instead")
    _check("layer", layer, len(stops))
    path, hop = stops[layer]
    reading = read(model, instance, lambda tap: tap.rpartition(".")[0] == path.rpartition(".")[0])
    part = find_maps(model, Reading(reading.calls, {path: reading.passed[path]}, reading.outputs))[hop]
    _check("head", head, len(part.weights))
    _check("position", position, part.weights.size(1))
    at = range(part.weights.size(1))[position]
    found, column = _head(model, reading, path, hop, head, at)
    seen = found.scores > torch.finfo(found.scores.dtype).min / 2  # others are hidden: the future, or padding
    tensors = {"query": found.query, "keys": found.keys[seen], "values": found.values[seen]}
    tensors |= {"scores": found.scores[seen], "weights": found.weights[seen], "context": found.context}
    numbers = {name: t.double().cpu().numpy() for name, t in tensors.items()}
    if not np.allclose(numbers["weights"] @ numbers["values"], numbers["context"], atol=1e-4, rtol=1e-3):
        raise UserError("this head has weights for every dimension; there is no single row to walk through")
    places = [column + int(n) for n in seen.nonzero()[:, 0]]
    return View("walk", numbers, _rows(numbers, places, instance), _facts(part, head, at, numbers, instance))


def _stops(model: SequenceModel) -> list[tuple[str, int]]:
    """Every attention that shows all of its parts: the path of the tap of its weights, and each of its hops."""
    taps = find_taps(model)
    found = []
    for path in taps:
        owner, _, tap = path.rpartition(".")
        if tap in WEIGHTS and all(f"{owner}.{part}" in taps for part in PARTS):
            found += [(path, hop) for hop in range(getattr(model.get_submodule(owner), "hops", 1))]
    return found


def _head(model: SequenceModel, reading: Reading, path: str, hop: int, head: int, row: int) -> tuple[Head, int]:
    """The parts for one row of a map, and the position of the first key."""
    owner, call, calls = path.rpartition(".")[0], 0, reading.passed[path]
    while row >= (steps := calls[call].over_time()[hop].size(-2)):  # the map of calls that continue each other
        call, row = call + 1, row - steps
    own = find_maps(model, Reading(reading.calls, {path: [calls[call]]}, reading.outputs))[hop]
    scores, query, context = (
        reading.passed[f"{owner}.{tap}"][call].over_time()[hop] for tap in ("scores", "query", "context")
    )
    keys, values = (_latest(reading.passed[f"{owner}.{tap}"], call) for tap in ("keys", "values"))
    shared = head * keys.size(0) // scores.size(0)  # several query heads may share keys and values
    weights = calls[call].over_time()[hop][head, row]
    parts = query[head, row], keys[shared], values[shared], scores[head, row], weights, context[head, row]
    return Head(*parts), own.column


def _latest(found: list[Passed], call: int) -> Tensor:
    """Keys or values (heads, S, D) that a call uses: its own, or those of a source read before."""
    return found[min(call, len(found) - 1)].tensors[-1][0]


def _rows(numbers: dict[str, np.ndarray], places: list[int], instance: Instance) -> list[Row]:
    """One row per key."""
    sizes = np.linalg.norm(numbers["values"], axis=1) * numbers["weights"]
    return [
        {
            "position": place,
            "token": labels(instance, place, place + 1)[0],
            "score": float(numbers["scores"][n]),
            "weight": float(numbers["weights"][n]),
            "contribution": float(sizes[n]),
        }
        for n, place in enumerate(places)
    ]


def _facts(part: Map, head: int, row: int, numbers: dict[str, np.ndarray], instance: Instance) -> Json:
    q, keys, scores, weights = (numbers[name] for name in ("query", "keys", "scores", "weights"))
    dots = keys @ q if keys.shape[-1] == q.shape[-1] else np.full_like(scores, np.nan)
    exponentials = np.exp(scores - scores.max())
    soft = np.allclose(exponentials / exponentials.sum(), weights, atol=1e-5)
    scaled, plain = (np.allclose(x, scores, rtol=1e-3, atol=1e-4) for x in (dots / np.sqrt(len(q)), dots))
    at = part.row + row
    asked = labels(instance, at, at + 1)[0] if part.kind in ("self", "source") else "the whole sequence"
    return {
        "layer": part.name,
        "head": head + 1,
        "query": asked,
        "sides": [side(instance, part.row), side(instance, part.column)],
        "score": "q k / sqrt(D)" if scaled else "q k" if plain else "a learned function of q and k",
        "align": "softmax" if soft else "other than softmax: sparse, local or hard",
    }


def _check(option: str, given: int, count: int) -> None:
    if not -count <= given < count:
        raise UserError(f"{option}={given}: there are {count}, numbered 0 to {count - 1}")
