"""Transfer: a new run starts from the encoder of an earlier one, with a new head.

Whatever the earlier run's task (masked language modelling, language modelling, translation), its token embedding and
backbone are copied; layers that the new model does not have, such as a decoder, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel

_PARTS = ("embed.", "backbone.")


def transfer(
    model: SequenceModel, tensors: Mapping[str, Tensor], name: str, *, head: bool = False, blank: bool = False
) -> str:
    """Copy the embedding and backbone into the model and describe what was copied. All shapes are checked first.

    `head`: the output layer too, if it has the same shape: the task is the same. `blank`: what is added to the token
    embeddings and is not known there starts at zero, so that the encoder reads what it was trained on.
    """
    check_transfer(model, {n: tuple(t.shape) for n, t in tensors.items()}, name)
    mine = _encoder(model)
    if head:
        outputs = {n: p for n, p in model.named_parameters() if n.startswith("head.") and n in tensors}
        mine |= outputs if all(p.shape == tensors[n].shape for n, p in outputs.items()) else {}
    taken = {n: (p, tensors[n]) for n, p in mine.items() if n in tensors}
    with torch.no_grad():
        for p, t in taken.values():
            p[: len(t)].copy_(t[: len(p)])
        for n, p in mine.items():
            if blank and n.startswith("embed.") and n not in taken:
                p.zero_()
    count = sum(min(p.numel(), t.numel()) for p, t in taken.values())
    new = sum(p.numel() for p in model.parameters()) - count
    return f"{count:,} weights copied from {name}, {new:,} initialised"


def check_transfer(model: SequenceModel, shapes: Mapping[str, tuple[int, ...]], name: str) -> None:
    """Raise if weights of these shapes are not those of the model's embedding and backbone."""
    mine = {n: tuple(p.shape) for n, p in _encoder(model).items()}
    missing = [n for n in mine if n not in shapes and n.startswith("backbone.")]
    wrong = [n for n, shape in mine.items() if n in shapes and not _fits(n, shape, shapes[n])]
    if missing or wrong:
        first = (missing or wrong)[0]
        reason = f"it has no {first}" if missing else f"{first} has shape {shapes[first]} there, {mine[first]} here"
        if not missing and all(n.startswith("embed.") for n in wrong):
            raise UserError(f"{name}: it reads other inputs ({reason}); start from a run on data with the same columns")
        raise UserError(f"{name}: {reason}; use the model options of that run, or leave them out")
    if not any(n.startswith("backbone.") for n in mine if n in shapes):
        raise UserError(f"{name}: it has no encoder to start from; choose another run")


def freeze(model: SequenceModel, count: int) -> None:
    """Freeze the first `count` stages."""
    stages = model.stages()
    if count >= len(stages):
        raise UserError(f"train.freeze={count}: the model has {len(stages)} stages, and the last one must be trained")
    for stage in stages[:count]:
        for p in stage:
            p.requires_grad_(False)


def _encoder(model: SequenceModel) -> dict[str, Tensor]:
    return {n: p for n, p in model.named_parameters() if n.startswith(_PARTS)}


def _fits(name: str, mine: tuple[int, ...], theirs: tuple[int, ...]) -> bool:
    """Embeddings may have more rows in one task than in another: a mask token, a source vocabulary."""
    return mine == theirs or (name == "embed.weight" and mine[1:] == theirs[1:])
