"""Decode many sources at once, each truncated to what the model can read.

A model with a limited context truncates, and any other at LONGEST tokens, beyond which a source only takes time. An
encoder-decoder has its full context for the source and again for the output. A causal model has one context for both:
the output gets the requested number of tokens, or else a quarter of the context, but never more than half; the source
may use the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from seqloom.core.batch import pad
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length
from seqloom.decode.beam import Hypothesis
from seqloom.decode.decoding import Decoding, decode

AT_ONCE = 4096  # tokens per batch
LONGEST = 5_000  # tokens of a source
_MOST = 2000  # tokens of an output where no maximum is given: a model that never ends one stops all the same


class Frame(NamedTuple):
    """Start and end token of an output, and its maximum length; 0: twice the source length plus 10, up to _MOST."""

    begin: int
    end: int
    most: int = 0


def fit_source(model: SequenceModel, ids: np.ndarray, most_new: int = 0) -> np.ndarray:
    """As much of a source as the model can read: a longer one loses its last tokens, but keeps its end token.

    `most_new`: output tokens to leave room for; 0: unspecified.
    """
    most = model.limit or LONGEST
    if model.limit and model.joins:
        most -= min(most_new or most // 4, most // 2)
    return ids if len(ids) <= most else np.concatenate((ids[: max(0, most - 1)], ids[-1:]))


def room(model: SequenceModel, read: int) -> float:
    """Tokens that the model can generate after a source of `read` tokens."""
    if model.limit is None:
        return float("inf")
    return max(1, model.limit - read) if model.joins else model.limit


def asked_new(read: int, most: int = 0) -> int:
    """Maximum output tokens after a source of `read` tokens, if the model has room; `most`: as in `Frame`."""
    return most or min(2 * read + 10, _MOST)


def find(
    model: SequenceModel, sources: Sequence[np.ndarray], how: Decoding, frame: Frame, seed: int | None = None
) -> list[list[Hypothesis]]:
    """The hypotheses for each source, best first; sources of similar length are decoded together."""
    found: list[list[Hypothesis]] = [[]] * len(sources)
    lengths = np.array([len(ids) for ids in sources])
    training = model.training
    model.eval()
    for chosen in cut_by_length(np.argsort(lengths, kind="stable"), lengths, max(1, AT_ONCE // how.beams)):
        own = None if seed is None else seed + int(chosen[0])  # otherwise all batches would sample alike
        for n, hypotheses in zip(chosen, _search(model, [sources[n] for n in chosen], how, frame, own), strict=True):
            found[n] = hypotheses
    model.train(training)
    return found


@torch.inference_mode()
def _search(
    model: SequenceModel, sources: Sequence[np.ndarray], how: Decoding, frame: Frame, seed: int | None
) -> list[list[Hypothesis]]:
    context, mask = pad(sources)
    context, mask = context.to(model.device), mask.to(model.device)
    most = [int(min(asked_new(len(ids), frame.most), room(model, len(ids)))) for ids in sources]
    state = model.begin(context, None if bool(mask.all()) else mask)
    last = torch.full((len(sources),), frame.begin, device=model.device)
    return decode(model, state, last, how, max_new=most, end=frame.end, seed=seed)
