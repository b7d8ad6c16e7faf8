"""minLSTM (Feng et al. 2024): an LSTM whose gates depend only on the input and sum to one, trained in parallel.

f, i = sigmoid(W x_t),  h_t = f / (f + i) * h_{t-1} + i / (f + i) * W_c x_t

state = (h, last kernel-1 inputs) per layer; same blocks as minGRU
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F

from seqloom.core.taps import Tap
from seqloom.models import mingru


class MinLSTMCell(mingru.ParallelCell):
    signs = (-1, 1, 0)
    flow: ClassVar[dict[str, str]] = {"input_gate": "writes"}  # divided by the sum of both gates

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.input_gate = Tap()

    def gate(self, parts: Sequence[Tensor]) -> Tensor:
        f, i = parts
        # i / (f + i) = sigmoid(log i - log f): no division by zero when both gates are closed.
        return self.input_gate((F.softplus(-f) - F.softplus(-i)).sigmoid())


class Config(mingru.Config):
    cell = MinLSTMCell
