"""Training without descent: a model that counts reads the training part once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from seqloom.core.network import CountingModel

_PIECE = 1 << 20  # tokens read at once


def count(model: CountingModel, tokens: Any) -> None:
    def pieces() -> Iterator[Tensor]:
        for start in range(0, len(tokens), _PIECE):
            yield torch.from_numpy(tokens[start : start + _PIECE])

    model.observe(pieces())
