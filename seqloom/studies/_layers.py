"""One recurrent layer by several implementations, for the study of GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.layers.recurrent import step_by_step
from seqloom.pages.words import Pair
from seqloom.studies._models import backbone

WAYS: dict[str, Pair] = {
    "here": ("kernels used here", "本库的核函数"),
    "torch": ("torch.nn", "torch.nn"),
    "loop": ("plain loop", "普通循环"),
}


def layer(name: str, way: str, width: int, x: Tensor, seed: int) -> Callable[[], Tensor]:
    """Runs an LSTM or a GRU on (B, T, inputs); returns (B, T, width)."""
    if way == "torch":
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[name]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module: nn.Module = kind(x.size(-1), width, batch_first=True)
        return lambda: module(x)[0]
    body = backbone(name, seed, width=width, inputs=x.size(-1)).train()
    if way == "here":
        return lambda: body(x)[0]
    (cell,) = body.stages()[0].children()
    found: Any = cell
    return lambda: step_by_step(found, x, found.start(x), None)[0]
