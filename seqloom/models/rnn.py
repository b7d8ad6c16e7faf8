"""RNN (Elman 1990): one hidden vector, updated from itself and each new input.

h_t = tanh(W_x x_t + W_h h_{t-1} + b)        state = (h,) per layer
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from seqloom.core.backbone import Backbone
from seqloom.core.rows import Json
from seqloom.layers.fused import RNNSequence
from seqloom.layers.kernels import fields
from seqloom.layers.linear import weight_of
from seqloom.layers.recurrent import Cell, Memory, RecurrentConfig


class RNNCell(Cell):
    gates = 1
    blocks = ("hidden",)

    def __init__(self, inputs: int, hidden: int, activation: str = "tanh") -> None:
        super().__init__(inputs, hidden)
        self.relu = activation == "relu"
        self.gating = fields.RNN_RELU if self.relu else fields.RNN

    def step(self, x: Tensor, memory: Memory) -> Memory:
        (h,) = memory
        a = x + self.of_hidden(h)
        return (a.relu() if self.relu else a.tanh(),)

    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        hidden = RNNSequence.apply(self.project(x), weight_of(self.of_hidden), memory[0], self.relu)
        return hidden, (hidden[-1].clone(),)  # a view would keep the whole tensor alive


class Config(RecurrentConfig):
    width: int = Field(848, ge=1, description="size of every hidden vector")
    activation: Literal["tanh", "relu"] = Field("tanh", description="activation of the hidden state")

    variants: ClassVar[tuple[Json, ...]] = (*RecurrentConfig.variants, {"activation": "relu"})

    def build(self) -> Backbone:
        return self.unrolled(partial(RNNCell, activation=self.activation))
