"""The two readings of TTT: a memory that learns while it reads, and linear attention."""

from __future__ import annotations

import torch

from seqloom.core.network import Network
from seqloom.core.taps import find_taps, record
from seqloom.layers.fast_weights import Descent


def turn_round(model: Network) -> None:
    """Inner steps of the opposite sign: they raise the inner loss."""
    for tap in find_taps(model, "*.mixer.rate").values():
        tap.edit = torch.neg


@torch.inference_mode()
def inner_change(model: Network, ids: torch.Tensor) -> float:
    """Inner loss of a token after its own step, relative to before, mean over tokens and heads."""
    with record(model, "*.error*") as traces:
        model.begin(ids)
    before, after = (
        float(torch.cat([t for path, passed in traces.items() if path.endswith(name) for t in passed]).mean())
        for name in (".error", ".error_after")
    )
    return after / before


def as_linear_attention(seed: int, tokens: int = 64, size: int = 16) -> float:
    """Largest difference of outputs, relative to the largest output: inner steps on a matrix without a norm, from zero,
    at rate one and with gradients at the initial weights, and causal linear attention."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, 1, 1, tokens, size, generator=generator, dtype=torch.double)
    start = (torch.zeros(1, size, size, dtype=torch.double),)
    one = torch.ones(tokens, 1, dtype=torch.double)
    outputs, _ = Descent(start, start, None, one[:1]).dual(q, k, [lambda z: z - v[0]], one, [[True]])
    wanted = ((q @ k.mT).tril() @ v)[0]
    return float((outputs - wanted).abs().max() / wanted.abs().max())
