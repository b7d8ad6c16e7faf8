"""Pairs of sequences whose alignment is known, and small encoder-decoders trained on them, outside of a run.

Nothing is padded: all rows of a batch have one length. Decoders are scored with the right outputs before each step as
their input, unless the data gives them something else to read. B rows, S source tokens, T outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.studies._training import descend, network

CLIP = 1.0


@dataclass(frozen=True)
class Pairs:
    sources: Tensor  # (B, S)
    inputs: Tensor  # (B, T): what the decoder reads
    targets: Tensor  # (B, T)
    links: Tensor | None = None  # (B, T, S): True where a source token belongs to an output


Draw = Callable[[int, torch.Generator], Pairs]  # (rows, generator)


def written(sources: Tensor, targets: Tensor, start: int, links: Tensor | None = None) -> Pairs:
    """The decoder reads a start token, and then what has been written."""
    begin = torch.full_like(targets[:, :1], start)
    return Pairs(sources, torch.cat((begin, targets[:, :-1]), dim=1), targets, links)


@dataclass(frozen=True)
class Training:
    updates: int
    rows: int = 64  # per update
    rate: float = 5e-3  # falls linearly to 0


def trained(name: str, tokens: int, outputs: int, draw: Draw, how: Training, seed: int, **options: Any) -> Network:
    """Adam, the norm of the gradient clipped; data and initial weights follow from the seed."""
    model = network(name, tokens, seed, outputs=outputs, **options)
    generator = torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        pairs = draw(how.rows, generator)
        return cross_entropy(answers(model, pairs).flatten(0, 1), pairs.targets.flatten())

    descend(model, loss, how.rate, how.updates, CLIP)
    return model.eval()


def answers(model: Network, pairs: Pairs) -> Tensor:
    """Logits of all outputs, (B, T, outputs)."""
    logits, _ = model(pairs.inputs, model.begin(pairs.sources))
    return logits


@torch.inference_mode()
def hits(model: Network, pairs: Pairs) -> Tensor:
    """Share of right outputs at each step, (T,)."""
    return (answers(model, pairs).argmax(-1) == pairs.targets).double().mean(0)


def held_out(offset: int = 0) -> torch.Generator:
    """For data to score on: the same for all models, and not what any seed trains on."""
    return torch.Generator().manual_seed(10**6 + offset)
