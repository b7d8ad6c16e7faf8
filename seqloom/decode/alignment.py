"""Attention of each output token to the source: a given output is fed through the model again while recording it.

S source tokens, T output tokens (end token included), H heads. Row t holds the attention weights for output token t.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.taps import Tap, record

TAPS = {"encoder-decoder": "*.alignment", "causal": "*.attention.weights"}


@dataclass(frozen=True)
class Map:
    """The attention weights of one layer, or of one hop in a layer."""

    name: str
    weights: Tensor  # (H, T, S)


@dataclass(frozen=True)
class Alignment:
    source: str
    target: str
    source_tokens: list[str]
    target_tokens: list[str]
    maps: list[Map]
    score: float | None = None  # of the hypothesis; None: the target was given
    cut: bool = False  # the source was too long and was truncated

    @property
    def mean(self) -> Tensor:
        """Mean over all layers and heads, (T, S)."""
        return torch.stack([found.weights.mean(0) for found in self.maps]).mean(0)

    def summary(self) -> Json:
        """Tokens and the mean map as JSON, one row per output token."""
        weights = [[round(weight, 4) for weight in row] for row in self.mean.tolist()]
        return {"source_tokens": self.source_tokens, "target_tokens": self.target_tokens, "weights": weights}


@torch.inference_mode()
def read_maps(model: SequenceModel, source: Tensor, inputs: Tensor) -> list[Map]:
    """The maps for a source (S,) and decoder inputs (T,): the start token, then the output without its last token.

    A causal model reads both as one sequence; only its attention to the source is kept, so rows sum to less than one.
    """
    check_attention(model)
    training, causal = model.training, model.joins
    model.eval()
    state = None if causal else model.begin(source[None])  # not recorded: the encoder attends to itself here
    with record(model, TAPS[model.kind]) as traces:
        model(torch.cat((source, inputs))[None] if causal else inputs[None], state)
    model.train(training)
    if causal:
        traces = {path: [w[:, :, len(source) :, : len(source)] for w in trace] for path, trace in traces.items()}
    return [part for path, trace in traces.items() if trace for part in _hops(_named(path), trace, len(inputs))]


def check_attention(model: SequenceModel) -> None:
    """Raise if the model has no attention to the source."""
    taps = (path for path, module in model.named_modules() if isinstance(module, Tap))
    if not any(fnmatch(path, TAPS[model.kind]) for path in taps):
        raise UserError("this model has no alignment: it has no attention to its source")


def _hops(name: str, trace: list[Tensor], length: int) -> list[Map]:
    """One map per hop. A trace holds hop after hop, either for all steps at once or for each step in turn."""
    hops = sum(weights.size(2) for weights in trace) // length
    names = [name] if hops == 1 else [f"{name}, hop {hop + 1}" for hop in range(hops)]
    return [Map(own, torch.cat(trace[hop::hops], dim=2)[0].float().cpu()) for hop, own in enumerate(names)]


def _named(path: str) -> str:
    """`backbone.decoder.0.source.alignment` is decoder layer 1; `backbone.attention.alignment` is attention."""
    number = re.search(r"\.(\d+)\.", path)
    if number is None:
        return "attention"
    return f"{'decoder ' if 'decoder' in path else ''}layer {int(number[1]) + 1}"
