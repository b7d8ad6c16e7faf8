"""Small networks and data for studies that look at gradients, or train for a few hundred steps outside of a run."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.core.model import ModelConfig
from seqloom.core.network import Network
from seqloom.data.samples import find_sample
from seqloom.lab.matching import match_size
from seqloom.runs.registry import section
from seqloom.studies._models import backbone, parameters

SYMBOLS, NOISE = 8, 8  # of recall: tokens to be remembered, tokens in between
ASK = SYMBOLS + NOISE  # the last token, which asks for the symbol
RECALL_TOKENS = ASK + 1


def network(name: str, tokens: int, seed: int, *, outputs: int = 0, **options: Any) -> Network:
    """Embedding, an architecture of models/ and a linear output layer, without dropout."""
    body = backbone(name, seed, dropout=0.0, **options)
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1000)
        embed, head = nn.Embedding(tokens, body.inputs or body.width), nn.Linear(body.width, outputs or tokens)
    return Network(embed, body, head).train()


def matched(name: str, size: int, tokens: int, *, outputs: int = 0, **options: Any) -> dict[str, Any]:
    """Options with which a network has `size` parameters, embedding and output layer included."""

    def plain(config: ModelConfig) -> dict[str, Any]:
        return config.model_dump(exclude={"dropout"})

    def count(config: ModelConfig) -> int:
        return parameters(network(name, tokens, 0, outputs=outputs, **plain(config)))

    return plain(match_size(section("models", {"name": name, **options}), size, count, name))


@cache
def text(sample: str = "python-docs") -> tuple[Tensor, int, str]:
    """A built-in text as ids of its characters, how many different ones there are, and its SHA-256."""
    joined = "".join(find_sample(f"sample:{sample}", "text").read())
    characters = {character: n for n, character in enumerate(sorted(set(joined)))}
    ids = torch.tensor([characters[character] for character in joined])
    return ids, len(characters), hashlib.sha256(joined.encode()).hexdigest()


def stretches(ids: Tensor, rows: int, length: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs and the tokens that follow them, (rows, length) each, from random places of a text."""
    starts = torch.randint(len(ids) - length, (rows, 1), generator=draw)
    found = ids[starts + torch.arange(length + 1)]
    return found[:, :-1], found[:, 1:]


def recall(rows: int, length: int, distance: Tensor | int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise in which one symbol stands `distance` tokens before the end, where it is asked for: (rows, length), and the
    symbol (rows,)."""
    ids = SYMBOLS + torch.randint(NOISE, (rows, length), generator=draw)
    symbols = torch.randint(SYMBOLS, (rows,), generator=draw)
    ids[torch.arange(rows), length - 1 - distance] = symbols
    ids[:, -1] = ASK
    return ids, symbols


def clipped(parameters: list[nn.Parameter], most: float) -> float:
    """Clip the norm of the whole gradient, if `most` is not 0; returns the norm before."""
    return float(nn.utils.clip_grad_norm_(parameters, most or float("inf")))
