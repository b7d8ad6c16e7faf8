"""What an output attends to, what has influence on it, and how both agree with a known alignment."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.network import Network
from seqloom.core.taps import record
from seqloom.decode.alignment import TAPS
from seqloom.explain.alignments import alignment_error_rate
from seqloom.studies._aligned import Data, another
from seqloom.studies._pairs import Pairs, answers, held_out

REPLACED = 2  # random replacements of each source token


@dataclass(frozen=True)
class Scores:
    """Of one trained model, over all outputs that have links."""

    able: float  # accuracy
    aligned: float  # alignment error rate of the token attended to most
    influential: float  # of the token with the most influence
    random: float  # of a random token
    agree: float  # share of outputs for which both are the same token
    changed: tuple[float, float, float]  # of outputs, by replacing the most attended, the most influential, another


@torch.inference_mode()
def accuracy(model: Network, pairs: Pairs) -> float:
    """Of outputs that have links."""
    assert pairs.links is not None
    return float((answers(model, pairs).argmax(-1) == pairs.targets)[pairs.links.any(-1)].double().mean())


@torch.inference_mode()
def attention(model: Network, pairs: Pairs) -> Tensor:
    """The weights of each output on the source, mean over layers and heads, (B, T, S)."""
    state = model.begin(pairs.sources)
    with record(model, TAPS[model.kind]) as traces:
        model(pairs.inputs, state)
    return torch.stack([torch.cat(steps, dim=2).mean(1) for steps in traces.values() if steps]).mean(0)


@torch.inference_mode()
def influence(model: Network, data: Data, pairs: Pairs, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """What replacing each source token takes from the log-probability of each output, and how often it changes the
    output, (B, T, S) both."""
    length = pairs.sources.size(1)
    sources = pairs.sources.repeat(REPLACED, length, 1, 1)  # (replacements, places, B, S)
    for place in range(length):
        old = sources[:, place, :, place]
        sources[:, place, :, place] = another(old.flatten(), data.kind, generator).view_as(old)
    before = answers(model, pairs).log_softmax(-1)
    said = before.argmax(-1)
    inputs = pairs.inputs.repeat(REPLACED * length, 1)
    after = answers(model, Pairs(sources.flatten(0, 2), inputs, inputs)).log_softmax(-1)
    after = after.view(REPLACED, length, *before.shape)
    drops = (before - after).gather(-1, said.expand(after.shape[:-1])[..., None])[..., 0]
    changes = (after.argmax(-1) != said).float()
    return drops.mean(0).movedim(0, -1), changes.mean(0).movedim(0, -1)


def error_rate(chosen: Tensor, links: Tensor) -> float:
    """AER of one source token for each output (B, T); outputs without links are left out."""
    counted = links.any(-1)
    outputs = torch.arange(links[..., 0].numel()).view(counted.shape)
    predicted = set(zip(chosen[counted].tolist(), outputs[counted].tolist(), strict=True))
    sure, possible = (
        {(source, output) for output, source in where.flatten(0, 1).nonzero().tolist()}
        for where in (links & (links.sum(-1, keepdim=True) == 1), links)
    )
    return alignment_error_rate(predicted, sure, possible)


def scores(model: Network, data: Data, pairs: Pairs) -> Scores:
    links, generator = pairs.links, held_out(1)
    assert links is not None
    counted = links.any(-1)
    attended = attention(model, pairs).argmax(-1)
    drops, changes = influence(model, data, pairs, generator)
    influential = drops.argmax(-1)
    length = pairs.sources.size(1)
    random = torch.randint(length, attended.shape, generator=generator)
    elsewhere = (attended + 1 + torch.randint(length - 1, attended.shape, generator=generator)) % length

    def changed(chosen: Tensor) -> float:
        return float(changes.gather(-1, chosen[..., None])[..., 0][counted].mean())

    return Scores(
        able=accuracy(model, pairs),
        aligned=error_rate(attended, links),
        influential=error_rate(influential, links),
        random=error_rate(random, links),
        agree=float((attended == influential)[counted].double().mean()),
        changed=(changed(attended), changed(influential), changed(elsewhere)),
    )
