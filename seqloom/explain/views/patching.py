"""Patching: run text A, put in what text B has at one place (layer and position), and see what that changes.

Places are the embedding, the output of every layer and, where a layer's memory is one vector per step, that memory:
what is put in there is what the next step reads. Both runs go through the same computation step for step, so that
putting in what was there already changes nothing, not even by rounding.

L places one can patch, P positions of text A. Positions of A and B are matched from the end of each part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.taps import Tap, find_taps
from seqloom.explain.places import BUDGET, EMBEDDED, affordable, edited, embeddings, network_of
from seqloom.explain.view import View

LITTLE = 0.1  # nats: shares of a smaller difference say little
SMALL = 1e-6  # a difference of scores below this is none: effects are then changes of the score, not shares


class Site(NamedTuple):
    name: str
    paths: list[str]  # taps that are replaced together


class Seen(NamedTuple):
    """What passes every tap, {path: {position: (copies, width)}}, and what is predicted (copies, O, C)."""

    vectors: dict[str, dict[int, Tensor]]
    found: Tensor


@dataclass(frozen=True)
class Question:
    """Which output is looked at in each text, and the classes whose scores are compared."""

    output_a: int
    output_b: int
    kind_a: int
    kind_b: int

    def score(self, found: Tensor, output: int) -> Tensor:
        """(copies, O, C) -> (copies,): of B's class, minus that of A's if it is another one."""
        own = found[:, output]
        return own[:, self.kind_b] - own[:, self.kind_a] if self.kind_a != self.kind_b else own[:, self.kind_b]


def patching(model: SequenceModel, a: Instance, b: Instance, *, output: int | None = None) -> View:
    """`output`: which output of A to look at, with its counterpart in B from the end; default: the last one that the
    model itself chose differently in A and B, or else the last one."""
    network = network_of(model)
    question = _question(a, b, output)
    sites = _sites(network)
    classes = embeddings(network, a)[1].size(-1)
    copies = min(len(a.inputs), affordable(a, network, classes), affordable(b, network, classes))
    with torch.no_grad():
        held = sum(x.numel() for at in _watch(network, a, sites, 1).vectors.values() for x in at.values())
        copies = max(1, min(copies, BUDGET // held))  # a memory may be a matrix
        seen_a, seen_b = (_watch(network, text, sites, copies) for text in (a, b))
        before = question.score(seen_a.found, question.output_a)  # (copies,)
        between = question.score(seen_b.found, question.output_b) - before  # copy by copy, as patches round
        moved = np.full((len(sites), len(a.inputs)), math.nan)
        effect, kinds = moved.copy(), np.full(moved.shape, -1)
        share = bool(between.abs().min() > SMALL)
        for n, site in enumerate(sites):
            pairs = [(p, q) for p, q in _matched(a, b) if _passes(site, seen_a, p) and _passes(site, seen_b, q)]
            for first in range(0, len(pairs), copies):
                some = pairs[first : first + copies]
                found = _patched(network, a, sites, site, seen_b, some, copies)[: len(some)]
                at = [p for p, _ in some]
                change = question.score(found, question.output_a) - before[: len(some)]
                moved[n, at] = change.cpu().numpy()
                effect[n, at] = (change / between[: len(some)] if share else change).cpu().numpy()
                kinds[n, at] = found[:, question.output_a].argmax(-1).cpu().numpy()
    ends = float(before[0]), float(before[0] + between[0])
    tensors = {"effect": effect, "moved": moved, "predicts": kinds}
    return _view(a, b, [site.name for site in sites], question, tensors, ends, share)


def _question(a: Instance, b: Instance, output: int | None) -> Question:
    if a.task != b.task:
        raise UserError(f"patching: the texts are of two tasks, {a.task} and {b.task}")
    count = len(a.outputs)
    if output is not None and not -count <= output < count:
        raise UserError(f"output {output}: there are {count:,}, from 0 to {count - 1}")
    common = min(count, len(b.outputs))
    differ = [
        back
        for back in range(1, common + 1)
        if not (a.outputs[-back].given or b.outputs[-back].given) and a.outputs[-back].chosen != b.outputs[-back].chosen
    ]
    back = (differ[0] if differ else 1) if output is None else count - output % count
    if back > common:
        raise UserError(f"output {output}: text B has only {common:,} outputs, and they are matched from the end")
    kinds = a.outputs[-back].chosen, b.outputs[-back].chosen
    if any(_name(a, kind) != _name(b, kind) for kind in kinds):
        raise UserError(f"patching: the classes of {a.task} are places in the text, which differ between A and B")
    return Question(count - back, len(b.outputs) - back, *kinds)


def _name(instance: Instance, kind: int) -> str | None:
    try:
        return instance.name(kind)
    except IndexError:
        return None


def _sites(network: Network) -> list[Site]:
    """From input to output."""
    known, backbone = {tap: path for path, tap in find_taps(network).items()}, network.backbone

    def outputs(title: str, taps: Sequence[Tap]) -> list[Site]:
        return [Site(f"{title} {n}", [known[tap]]) for n, tap in enumerate(taps, 1)]

    encoder, memories = backbone.encoder_taps(), [[known[tap] for tap in taps] for taps in backbone.memory_taps()]
    found = [Site("embedding", [EMBEDDED]), *outputs("encoder layer", encoder)]
    title = "decoder " if encoder else ""
    found += outputs(f"{title}layer", backbone.layer_taps())
    found += [Site(f"{title}memory {n}", paths) for n, paths in enumerate(memories, 1) if paths]
    if len(memories) > 1 and all(memories):
        found.append(Site(f"{title}memory, all layers", [path for paths in memories for path in paths]))
    return found


def _matched(a: Instance, b: Instance) -> list[tuple[int, int]]:
    """Positions of A with their counterparts in B, each part from its end."""
    parts_a, parts_b = a.parts or (("input", len(a.inputs)),), b.parts or (("input", len(b.inputs)),)
    found, end_a, end_b = [], 0, 0
    for (_, size_a), (_, size_b) in zip(parts_a, parts_b, strict=True):
        end_a, end_b, common = end_a + size_a, end_b + size_b, min(size_a, size_b)
        found += list(zip(range(end_a - common, end_a), range(end_b - common, end_b), strict=True))
    return found


def _passes(site: Site, seen: Seen, position: int) -> bool:
    return all(position in seen.vectors[path] for path in site.paths)


def _paths(sites: Sequence[Site]) -> list[str]:
    return list(dict.fromkeys(path for site in sites for path in site.paths if path != EMBEDDED))


def _watch(network: Network, instance: Instance, sites: Sequence[Site], copies: int) -> Seen:
    """Run a text with nothing replaced, on the path that replacing takes."""
    vectors: dict[str, dict[int, Tensor]] = {path: {} for path in (EMBEDDED, *_paths(sites))}

    def keep(path: str, x: Tensor, first: int) -> Tensor:
        for step in range(min(x.size(1), len(instance.inputs) - first)):
            vectors[path][first + step] = x[:, step]
        return x

    with edited(network, _paths(sites), keep):
        return Seen(vectors, instance.read(network, copies))


def _patched(
    network: Network,
    instance: Instance,
    sites: Sequence[Site],
    site: Site,
    other: Seen,
    pairs: Sequence[tuple[int, int]],
    copies: int,
) -> Tensor:
    """(copies, O, C): in copy n, the n-th position has what its counterpart has in the other text."""

    def put(path: str, x: Tensor, first: int) -> Tensor:
        rows = [n for n, (p, _) in enumerate(pairs) if first <= p < first + x.size(1)] if path in site.paths else []
        if not rows:
            return x
        x = x.clone()
        for n in rows:
            x[n, pairs[n][0] - first] = other.vectors[path][pairs[n][1]][n]
        return x

    with edited(network, _paths(sites), put):
        return instance.read(network, copies)


def _view(
    a: Instance,
    b: Instance,
    sites: list[str],
    question: Question,
    tensors: dict[str, np.ndarray],
    ends: tuple[float, float],
    share: bool,
) -> View:
    effect, moved, kinds = tensors["effect"], tensors["moved"], tensors["predicts"]
    other = dict(_matched(a, b))
    rows: list[Row] = [
        {
            "place": site,
            "position": p,
            "input": a.inputs[p],
            "other": b.inputs[other[p]],
            "effect": float(effect[n, p]),
            "moved": float(moved[n, p]),
            "predicts": a.name(int(kinds[n, p])),
        }
        for n, site in enumerate(sites)
        for p in range(len(a.inputs))
        if not math.isnan(effect[n, p])
    ]
    facts: Json = {
        "places": sites,
        "output": question.output_a,
        "class_a": a.name(question.kind_a),
        "class_b": b.name(question.kind_b),
        "score_a": ends[0],
        "score_b": ends[1],
        "difference": ends[1] - ends[0],
        "share": share,  # whether effects are shares of the difference, or changes of the score
        "remarks": _remarks(a, b, share, ends[1] - ends[0]),
    }
    return View("patching", tensors, rows, facts)


def _remarks(a: Instance, b: Instance, share: bool, difference: float) -> list[str]:
    remarks = []
    if len(a.inputs) != len(b.inputs):
        remarks.append(
            f"A has {len(a.inputs):,} positions and B {len(b.inputs):,}: they are matched from the end, and those of A "
            "without a counterpart are left out"
        )
    if share and abs(difference) < LITTLE:
        remarks.append(f"A and B differ by only {abs(difference):.2g} in score: shares of so little say little")
    if not share:
        remarks.append("A and B have the same score: effects are changes of the score, not shares of a difference")
    return remarks
