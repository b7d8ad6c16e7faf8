"""Lens: what each layer would predict if it were the last one (nostalgebraist 2020), for any task.

Copy n of the input skips all layers after the n-th: its output there takes the place of the last layer's output, and
goes through the final norm, the head and the task as that one does.

L layers, the embedding first if it has their width; O outputs; C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.taps import Edit, find_taps, replace
from seqloom.explain.places import EMBEDDED, affordable, embeddings, network_of
from seqloom.explain.view import View

_SAME = 1e-4  # relative difference of vectors that are equal up to rounding


def lens(model: SequenceModel, instance: Instance) -> View:
    network = network_of(model)
    paths = _paths(network)
    _check(network, instance, paths[-1])
    vectors, whole = embeddings(network, instance)
    if vectors.size(-1) == network.backbone.width:
        paths = [EMBEDDED, *paths]
    names = ["embedding" if path == EMBEDDED else f"layer {n}" for n, path in enumerate(paths, paths[0] != EMBEDDED)]
    copies = affordable(instance, network, whole.size(-1))
    with torch.no_grad():
        parts = [_read(network, instance, paths[n : n + copies], paths[-1]) for n in range(0, len(paths), copies)]
    found = torch.cat(parts).float().cpu()  # (L, O, C)
    facts: Json = {"layers": names, "notes": list(instance.notes)}
    facts["remark"] = "the head was trained on the last layer only: a lower layer may hold what it cannot read"
    if instance.unit == "value":
        return _values(instance, names, found[..., 0].numpy(), facts)
    return _classes(instance, names, found, facts)


def layer_paths(network: Network) -> list[str]:
    """The paths of the taps at each layer's output, from input to output."""
    known = {tap: path for path, tap in find_taps(network).items()}
    return [known[tap] for tap in network.backbone.layer_taps()]


def _paths(network: Network) -> list[str]:
    if found := layer_paths(network):
        return found
    raise UserError("this model has no layers one after another; influence and predictions can be shown")


def _check(network: Network, instance: Instance, last: str) -> None:
    """What the head reads must be the last layer's output after the final norm, and nothing else."""
    read: list[Tensor] = []
    passed: list[Tensor] = []
    hook = network.head.register_forward_pre_hook(lambda _, args: read.append(args[0][0]))
    keep: Edit = lambda x: passed.append(x[0]) or x  # type: ignore[func-returns-value] # noqa: E731
    try:
        with torch.no_grad(), replace(network, {last: keep}):
            instance.read(network, 1)
            finished = network.backbone.finish(torch.cat(passed)[None])[0]
    finally:
        hook.remove()
    heard = torch.cat([x.reshape(-1, x.size(-1)) for x in read])
    if heard.size(-1) == finished.size(-1):
        apart = torch.cdist(heard.double(), finished.double()).amin(1)
        if bool((apart <= _SAME * (1 + heard.double().norm(dim=1))).all()):
            return
    raise UserError(
        "between the last layer and the head this model does more than normalise, such as attending to the "
        "source, so that no earlier layer can take its place; influence and predictions can be shown"
    )


def _read(network: Network, instance: Instance, paths: Sequence[str], last: str) -> Tensor:
    """(len(paths), O, C): copy n is read by the head as it is at the n-th of these taps."""
    held: dict[int, Tensor] = {}

    def keep(n: int) -> Edit:
        def edit(x: Tensor) -> Tensor:
            held[n] = x[n]
            return x

        return edit

    def put(x: Tensor) -> Tensor:
        rows = [held[n] if path != last else x[n] for n, path in enumerate(paths)]
        return torch.stack(rows)

    edits = {path: keep(n) for n, path in enumerate(paths) if path != last}
    with replace(network, edits | {last: put}):
        return instance.read(network, len(paths))


def _classes(instance: Instance, names: list[str], found: Tensor, facts: Json) -> View:
    chosen = found.gather(-1, instance.chosen.expand(len(names), -1)[..., None])  # (L, O, 1)
    probability, rank = chosen[..., 0].exp().numpy(), 1 + (found > chosen).sum(-1).numpy()
    best = found.max(-1)
    rows: list[Row] = [
        {
            "layer": name,
            "output": n,
            "label": output.label,
            "best": instance.name(int(best.indices[at, n])),
            "best_probability": float(best.values[at, n].exp()),
            "probability": float(probability[at, n]),
            "rank": int(rank[at, n]),
        }
        for at, name in enumerate(names)
        for n, output in enumerate(instance.outputs)
    ]
    return View("lens", {"probability": probability, "rank": rank, "best": best.indices.numpy()}, rows, facts)


def _values(instance: Instance, names: list[str], values: np.ndarray, facts: Json) -> View:
    rows: list[Row] = [
        {"layer": name, "output": n, "label": output.label, "value": float(values[at, n])}
        for at, name in enumerate(names)
        for n, output in enumerate(instance.outputs)
    ]
    return View("lens", {"value": values}, rows, facts)
