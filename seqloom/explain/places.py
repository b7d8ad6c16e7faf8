"""Which input position passes a tap, whichever way a task and a model call it: at once, in parts or step by step.

Every position passes the tap of the embedding before it passes any other, so that one keeps the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import Network, SequenceModel
from seqloom.core.taps import Edit, replace

EMBEDDED = "embedded"
BUDGET = 50_000_000  # numbers held at a time: scores, activations

COUNTED = (
    "this model learns by counting or in closed form: it has no embedding and no layers to look at; "
    "what can be shown is predictions"
)

PlacedEdit = Callable[[str, Tensor, int], Tensor]  # path, what passes (copies, T, width), position of its first step


def network_of(model: SequenceModel) -> Network:
    """A model with an embedding whose output can be replaced, and gradients; otherwise a user error."""
    if not isinstance(model, Network) or not any(True for _ in model.parameters()):
        raise UserError(COUNTED)
    return model


@contextmanager
def edited(model: SequenceModel, paths: Iterable[str], edit: PlacedEdit) -> Iterator[None]:
    """Pass what passes these taps through a function that knows the position. Steps come as (copies, T, width)."""
    start, read, done = 0, 0, dict[str, int]()

    def embedded(x: Tensor) -> Tensor:
        nonlocal start, read
        start, read = read, read + x.size(1)
        done.clear()
        return edit(EMBEDDED, x, start)

    def at(path: str) -> Edit:
        def follow(x: Tensor) -> Tensor:
            steps = x[:, None] if x.dim() == 2 else x  # one step of a recurrent cell
            first = start + done.get(path, 0)
            done[path] = first - start + steps.size(1)
            return edit(path, steps, first).view_as(x)

        return follow

    edits: dict[str, Edit] = {path: at(path) for path in paths} | {EMBEDDED: embedded}
    with replace(model, edits):
        yield


def embeddings(model: SequenceModel, instance: Instance, copies: int = 1) -> tuple[Tensor, Tensor]:
    """The vectors (P, E) that the backbone reads, and what the model predicts from them (copies, O, C)."""
    passed: list[Tensor] = []

    def keep(path: str, x: Tensor, first: int) -> Tensor:
        passed.append(x[0])
        return x

    with torch.no_grad(), edited(model, [], keep):
        found = instance.read(model, copies)
    return torch.cat(passed)[: len(instance.inputs)].detach(), found


def affordable(instance: Instance, network: Network, classes: int, kept: bool = False) -> int:
    """How many copies of the input fit into memory at a time; `kept`: with what back-propagation needs."""
    places, width = len(instance.inputs), network.backbone.width
    depth = max(1, len(network.backbone.stages())) if kept else 1
    each = len(instance.outputs) * classes * (3 if kept else 1) + depth * places * (24 * width + 8 * places)
    return max(1, min(256, BUDGET // each))
