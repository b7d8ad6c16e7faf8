"""Transfer: a new run begins with the encoder of an old one, and with a head of its own.

Whatever the old run was taught (to guess hidden words, to go on writing, to translate), its table of tokens and its
backbone are taken; layers that the new model does not have, such as a decoder, are left behind.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel

_PARTS = ("embed.", "backbone.")


def transfer(model: SequenceModel, tensors: Mapping[str, Tensor], name: str) -> str:
    """Copy what fits into the model; what was taken, as a sentence. All or nothing: shapes are checked first."""
    mine = {n: p for n, p in model.named_parameters() if n.startswith(_PARTS)}
    taken = {n: (p, tensors[n]) for n, p in mine.items() if n in tensors}
    missing = [n for n in mine if n not in tensors and n.startswith("backbone.")]
    wrong = [n for n, (p, t) in taken.items() if p.shape != t.shape and not _is_table(n, p, t)]
    if missing or wrong:
        first = (missing or wrong)[0]
        reason = "it has no" if missing else f"{tuple(tensors[first].shape)} is not {tuple(mine[first].shape)} in its"
        raise UserError(f"{name}: {reason} {first}; give the model as it was there, or none at all")
    if not any(n.startswith("backbone.") for n in taken):
        raise UserError(f"{name}: no encoder in it that could be taken")
    with torch.no_grad():
        for p, t in taken.values():
            p[: len(t)].copy_(t[: len(p)])
    count = sum(min(p.numel(), t.numel()) for p, t in taken.values())
    new = sum(p.numel() for p in model.parameters()) - count
    return f"{count:,} weights from {name}, {new:,} new"


def freeze(model: SequenceModel, count: int) -> None:
    """The first stages learn no more."""
    stages = model.stages()
    if count >= len(stages):
        raise UserError(f"train.freeze={count}: there are {len(stages)} stages, and the last of them must learn")
    for stage in stages[:count]:
        for p in stage:
            p.requires_grad_(False)


def _is_table(name: str, mine: Tensor, theirs: Tensor) -> bool:
    """Tables may have more rows in one task than in another: a mask, a vocabulary of sources."""
    return name == "embed.weight" and mine.shape[1:] == theirs.shape[1:]
