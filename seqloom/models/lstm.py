"""LSTM (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000): a gated memory cell.

c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t)        state = (h, c) per layer
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.taps import Tap
from seqloom.layers.kernels import fields
from seqloom.layers.linear import weight_of
from seqloom.layers.recurrent import Cell, Memory, RecurrentConfig


class LSTMCell(Cell):
    gates = 4  # i, f, g, o
    gating = fields.LSTM
    memories = 2
    blocks = ("input", "forget", "candidate", "output")
    flow = {"input_gate": "writes", "forget_gate": "keeps"}
    carries = ("carry", "carry")

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        nn.init.ones_(self.bias[hidden : 2 * hidden].data)  # forget gate starts open (Jozefowicz et al. 2015)
        self.input_gate, self.forget_gate, self.output_gate, self.carry = Tap(), Tap(), Tap(), Tap()

    def step(self, x: Tensor, memory: Memory) -> Memory:
        h, c = memory
        i, f, g, o = (x + self.of_hidden(h)).chunk(4, dim=-1)
        i, f, o = self.input_gate(i.sigmoid()), self.forget_gate(f.sigmoid()), self.output_gate(o.sigmoid())
        c = self.carry(f * c + i * g.tanh())
        return o * c.tanh(), c

    def held(self) -> list[Tap]:
        return [self.carry, self.state]

    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        # torch's fused kernel (oneDNN, cuDNN), which measured faster than a hand-written one.
        # Under CPU autocast it runs in the dtype of the weights: its bfloat16 version fails without AVX-512.
        h, c = (part[None] for part in memory)
        weights = (weight_of(self.of_input), weight_of(self.of_hidden), self.bias, torch.zeros_like(self.bias))
        with torch.autocast("cpu", enabled=False):
            x = x.to(self.bias.dtype) if x.is_cpu else x
            hidden, h, c = torch.lstm(x, (h, c), weights, True, 1, 0.0, self.training, False, False)
        return hidden, (h[0], c[0])


class Config(RecurrentConfig):
    width: int = Field(416, ge=1, description="size of every hidden vector")

    cell = LSTMCell
