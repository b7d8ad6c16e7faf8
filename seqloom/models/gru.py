"""GRU (Cho et al. 2014): an update gate keeps or replaces the state, a reset gate limits its use in the new candidate.

n = tanh(W x + r * (U h_{t-1} + b)),  h_t = (1 - z) * n + z * h_{t-1}        state = (h,) per layer
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.taps import Tap
from seqloom.layers.fused import GRUSequence
from seqloom.layers.kernels import fields
from seqloom.layers.linear import weight_of
from seqloom.layers.recurrent import Cell, Memory, RecurrentConfig


class GRUCell(Cell):
    gates = 3  # r, z, n
    gating = fields.GRU
    blocks = ("reset", "update", "new")
    flow = {"update_gate": "keeps"}

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.bias_new = nn.Parameter(torch.zeros(hidden))  # scaled by the reset gate, so not part of `bias`
        self.reset_gate, self.update_gate = Tap(), Tap()

    def step(self, x: Tensor, memory: Memory) -> Memory:
        (h,) = memory
        x_r, x_z, x_n = x.chunk(3, dim=-1)
        h_r, h_z, h_n = self.of_hidden(h).chunk(3, dim=-1)
        r, z = self.reset_gate((x_r + h_r).sigmoid()), self.update_gate((x_z + h_z).sigmoid())
        n = (x_n + r * (h_n + self.bias_new)).tanh()
        return ((1 - z) * n + z * h,)

    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        hidden = GRUSequence.apply(self.project(x), weight_of(self.of_hidden), self.bias_new, memory[0])
        return hidden, (hidden[-1].clone(),)  # a view would keep the whole tensor alive


class Config(RecurrentConfig):
    width: int = Field(480, ge=1, description="size of every hidden vector")

    cell = GRUCell
