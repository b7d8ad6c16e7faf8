"""Influence: how much each input position contributes to each output, for any model that reads embeddings.

occlusion   the score of an output minus its score when one position is replaced by the baseline
gradients   integrated gradients from the baseline to the input, which add up to the difference of their scores

The score of a class is its logit above the mean of all classes (of a predicted number: the number). The log-probability
would not do: near 1 it hardly moves, whatever is taken away, and most of its gradient is where the input is unreadable.
Of two classes, "why A and not B", the score is the difference of their logits.

O outputs, P input positions, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.explain.baseline import baseline
from seqloom.explain.path import Path, Scores, put
from seqloom.explain.places import affordable, edited, network_of
from seqloom.explain.view import View

EXPLAINED = 24  # outputs, by gradients
LONGEST = 1_000  # positions, by occlusion: each is one more pass of the model
_LISTED = 100_000  # cells in the table; above, only the outputs that gradients explain

Method = Literal["occlusion", "gradients"]


def influence(
    model: SequenceModel,
    instance: Instance,
    *,
    outputs: Sequence[int] | None = None,
    against: str | Tensor | None = None,
    methods: Sequence[Method] = ("occlusion", "gradients"),
    nodes: int = 2048,
) -> View:
    """`outputs`: which ones to explain by gradients; default: the last EXPLAINED. `against`: the class that each chosen
    one is compared with, by name, or one per output. `nodes`: the most points of the path to take gradients at."""
    network = network_of(model)
    rivals = contrast(instance, against)
    explained = _explained(len(instance.outputs), outputs)
    x, neutral, found, name = baseline(network, instance)
    facts: Json = {"baseline": name, "unit": _unit(instance), "notes": list(instance.notes)}
    kept = score_of(instance, rivals)
    if rivals is not None:
        facts["against"] = [instance.name(kind) for kind in rivals.tolist()]
    tensors: dict[str, np.ndarray] = {}
    if "occlusion" in methods and len(x) > LONGEST:
        facts["left_out"] = f"occlusion: {len(x):,} positions, more than {LONGEST:,}"
    elif "occlusion" in methods:
        copies = affordable(instance, network, found.size(-1))
        tensors["occlusion"] = _occlusion(network, kept, x, neutral, copies)
    if "gradients" in methods:
        pick = torch.tensor(explained, device=x.device)
        copies = affordable(instance, network, found.size(-1), kept=True)
        scores = lambda model, copies: kept(model, copies)[:, pick]  # noqa: E731
        integral = Path(network, neutral, x, scores, copies).integrate(nodes)
        tensors["gradients"] = integral.parts
        facts |= {
            "explained": explained,
            "accounted": integral.accounted.tolist(),
            "difference": integral.difference.tolist(),
            "nodes": integral.nodes,
        }
    return View("influence", tensors, _rows(instance, tensors, explained), facts)


def contrast(instance: Instance, against: str | Tensor | None) -> Tensor | None:
    """The class that each output is compared with."""
    if against is None:
        return None
    if isinstance(against, str):
        if instance.kinds is None:
            raise UserError(f"against {against!r}: the outputs of {instance.task} have no other class by name")
        against = torch.full((len(instance.outputs),), instance.kinds(against))
    if torch.equal(against.cpu(), instance.chosen):
        raise UserError(f"against {instance.name(int(against[0]))!r}: this is what is explained; choose another")
    return against


def score_of(instance: Instance, rivals: Tensor | None) -> Scores:
    """(copies, O): what is explained of each output."""

    def scores(model: SequenceModel, copies: int) -> Tensor:
        if rivals is not None or instance.unit == "value":
            return instance.scores(model, copies, rivals)
        found = instance.read(model, copies)  # (copies, O, C)
        finite = found.isfinite()  # others are impossible
        mean = torch.where(finite, found, 0).sum(-1) / finite.sum(-1)
        return found.gather(-1, instance.chosen.to(found.device).expand(copies, -1)[..., None])[..., 0] - mean

    return scores


def _unit(instance: Instance) -> str:
    return "value" if instance.unit == "value" else "logit"


def _explained(count: int, outputs: Sequence[int] | None) -> list[int]:
    if outputs is None:
        return list(range(max(0, count - EXPLAINED), count))
    if wrong := [n for n in outputs if not -count <= n < count]:
        raise UserError(f"output {wrong[0]}: there are {count:,}, from 0 to {count - 1}")
    return [n % count for n in outputs]


def _occlusion(network: Network, scores_of: Scores, x: Tensor, neutral: Tensor, copies: int) -> np.ndarray:
    """(O, P)"""
    drops = []
    with torch.no_grad():
        for places in torch.arange(len(x), device=x.device).split(copies):
            vectors = x.repeat(len(places) + 1, 1, 1)  # the last one stays as it is
            vectors[torch.arange(len(places)), places] = neutral[places]
            with edited(network, [], put(vectors)):
                scores = scores_of(network, len(vectors))
            drops.append(scores[-1] - scores[:-1])
    found: np.ndarray = torch.cat(drops).T.double().cpu().numpy()
    return found


def _rows(instance: Instance, tensors: dict[str, np.ndarray], explained: list[int]) -> list[Row]:
    """One per output and input position."""
    few = len(instance.outputs) * len(instance.inputs) > _LISTED or "occlusion" not in tensors
    shown = explained if few else range(len(instance.outputs))
    order = {n: k for k, n in enumerate(explained)} if "gradients" in tensors else {}
    rows: list[Row] = []
    for n in shown:
        for p, token in enumerate(instance.inputs):
            row: Row = {"output": n, "label": instance.outputs[n].label, "position": p, "input": token}
            if "occlusion" in tensors:
                row["occlusion"] = float(tensors["occlusion"][n, p])
            if n in order:
                row["gradients"] = float(tensors["gradients"][order[n], p])
            rows.append(row)
    return rows
