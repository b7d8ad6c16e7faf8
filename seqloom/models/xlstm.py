"""xLSTM (Beck et al. 2024): an LSTM with exponential input gates, and two cells: sLSTM and mLSTM.

mLSTM   C_t = f_t C_{t-1} + i_t k_t^T v_t,  n_t = f_t n_{t-1} + i_t k_t,  h_t = q_t C_t / max(|q_t . n_t|, 1)
        one matrix per head; gates depend on the input alone, so that all steps train in parallel
sLSTM   c_t = f_t c_{t-1} + i_t z_t,  n_t = f_t n_{t-1} + i_t,  h_t = o_t c_t / n_t
        one number per unit; gates also depend on h_{t-1}, within each head: trained one step after the other

with i_t = exp(~i_t) and f_t = sigmoid(~f_t). The blocks are those of xLSTM 7B (Beck et al. 2025), with a short causal
convolution before the cell: a cell, its output normalised per head, then a gated feed-forward network.

state = (tokens read, (last kernel-1 inputs of the convolution, the cell's memory) per layer); memory of
  mLSTM   ((C, n) / e^m as one matrix (B, H, D, D + 1), m (B, H, 1)), where m keeps numbers in range (section 2.3)
  sLSTM   (h, c / n, log n), each (B, width)
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, stack_of
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.decayed_memory import decay_tapped, remember, remember_flops
from seqloom.layers.fused import SLSTMSequence
from seqloom.layers.linear import Linear, weight_of
from seqloom.layers.recurrent import Cell, Memory, at_last_step, step_by_step
from seqloom.layers.residual import Mixer, ResidualConfig, ResidualStack

NOTHING = -1e30  # log n of a memory that has read nothing
_STEEPEST = -50.0  # a lower log f is not followed when m is computed: sums of them would lose all digits


class Config(ResidualConfig):
    width: int = Field(120, ge=1, description="size of every hidden vector")
    cells: str = Field("ms", pattern="^[ms]+$", description="cells of the blocks, repeated: m is mLSTM, s is sLSTM")
    cap: float = Field(15.0, ge=0, description="soft cap of the mLSTM's gates, cap x tanh(x / cap); 0: none")
    chunk: int = Field(64, ge=1, description="tokens per chunk of the mLSTM's parallel form; affects speed only")

    per_head: ClassVar[int] = 1
    variants: ClassVar[tuple[Json, ...]] = (
        {"depth": 2},
        {"cells": "m", "chunk": 5, "cap": 0.0, "depth": 2, "heads": 2},
        {"cells": "s", "kernel": 1, "depth": 2},
        {"cells": "smm", "chunk": 4, "heads": 1},
    )

    def build(self) -> Backbone:
        mixers = (CELLS[cell](self) for cell in itertools.cycle(self.cells))
        return ResidualStack(self, mixers.__next__)


class HeadNorm(nn.Module):
    """LayerNorm over each head, with a learned gain per unit: (..., H, D) -> (..., H * D)."""

    def __init__(self, heads: int, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(heads * size)), eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], eps=self.eps).flatten(-2) * self.weight


class MLSTM(Mixer):
    flow: ClassVar[dict[str, str]] = {"write": "writes", "forget_gate": "keeps"}

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads, self.cap, self.chunk = config.width, config.heads, config.cap, config.chunk
        self.size = width // self.heads
        self.sizes = [width, width, width, width, 2 * self.heads]  # q, k, v, o, gates
        self.into = Linear(width, sum(self.sizes), bias=False)
        stack_of([width] * 4 + [self.heads] * 2, self.into.weight)
        opened = torch.linspace(3.0, 6.0, self.heads)  # forget gates start open: time constants of 21 to 404 steps
        self.bias = nn.Parameter(torch.cat((torch.zeros(self.heads), opened)))
        self.norm = HeadNorm(self.heads, self.size)
        self.out = Linear(width, width, bias=False)
        self.answers, self.output_gate = Tap(), Tap()
        # (B, T, H) each: f, and how much a token adds to the memory, as it is stored (norm)
        self.forget_gate, self.write = Tap(), Tap()

    def forward(self, x: Tensor, memory: State, mask: Tensor | None) -> tuple[Tensor, State]:
        # Autocast may run this product in low precision; the memory keeps the dtype of the weights.
        *qkvo, gates = self.into(x).to(x.dtype).split(self.sizes, dim=-1)
        q, k, v, o = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkvo)  # (B, H, T, D)
        with torch.autocast(x.device.type, enabled=False):
            i, f = self._gates(gates)
            h, memory = self._remember(q / math.sqrt(self.size), k, v, i, f, memory, mask)
        y = self.norm(h.transpose(1, 2)) * self.output_gate(o.transpose(1, 2).flatten(2).sigmoid())
        return self.out(self.answers(y)), memory

    def flops(self, length: int) -> float:
        return remember_flops(length, self.chunk, self.heads, 1, self.size, self.size + 1)

    def _gates(self, gates: Tensor) -> tuple[Tensor, Tensor]:
        """log i and log f: (B, T, H)."""
        gates = gates + self.bias
        if self.cap:
            gates = self.cap * (gates / self.cap).tanh()
        i, f = gates.chunk(2, dim=-1)
        return i, decay_tapped(self.forget_gate, F.logsigmoid(f))

    def _remember(
        self, q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, memory: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        rows = q.size(0), self.heads
        past: Any = memory or (q.new_zeros(*rows, self.size, self.size + 1), q.new_zeros(*rows, 1))
        matrix, before = past
        if mask is not None:  # padding is not stored, and nothing is forgotten for it
            i, f = i.masked_fill(~mask[..., None], -torch.inf), f * mask[..., None]
        i, f = i.mT, f.mT  # (B, H, T)
        m = stabiliser(i, f, before)
        shares = (i - m).exp()
        if self.write.watched:
            self.write((shares * k.norm(dim=-1) * v.norm(dim=-1)).mT)
        decay = f + torch.cat((before, m[..., :-1]), dim=-1) - m
        k, v = k * shares[..., None], F.pad(v, (0, 1), value=1.0)  # the last column of the matrix is n
        y, matrix = remember(q, k, v, decay[..., None], matrix, self.chunk)
        h = y[..., :-1] / torch.maximum(y[..., -1:].abs(), (-m).exp()[..., None])
        return h, (matrix, m[..., -1:].clone())


@torch.no_grad()
def stabiliser(i: Tensor, f: Tensor, before: Tensor) -> Tensor:
    """m_t = max(log f_t + m_{t-1}, log i_t, 0): (B, H, T).

    C and n are stored divided by e^m. It cancels in h, and so do its gradients: none are taken. It is never negative,
    because the 1 that h is divided by at least is stored as e^-m, which would overflow.
    """
    total = f.clamp_min(_STEEPEST).cumsum(-1)
    return total + torch.maximum((i.clamp_min(0) - total).cummax(-1).values, before)


class SLSTMCell(Cell):
    """As published, but for what is stored: the average c / n and log n, which need no stabiliser.

    With w = i / n_t = sigmoid(~i - log f - log n_{t-1}), the average is (1 - w) c_{t-1} / n_{t-1} + w z.
    """

    gates = 4  # i, f, z, o
    memories = 3
    blocks = ("input", "forget", "candidate", "output")
    flow = {"write": "writes"}
    carries = ("carry", "carry")

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, width, heads)
        stack_of(self.gates, self.weight_x)
        stack_of(self.gates * heads, self.weight_h)
        steps = torch.logspace(math.log10(2.0), math.log10(512.0), width // heads).repeat(heads)
        self.bias.data[width : 2 * width] = (1 - 1 / steps).logit()  # forget gates start at many paces
        self.write, self.forget_gate, self.output_gate = Tap(), Tap(), Tap()  # w (1 at the first token), f, o
        self.carry, self.mass = Tap(), Tap()  # c / n, log n

    def step(self, x: Tensor, memory: Memory) -> Memory:
        h, average, mass = memory
        i, f, z, o = (x + self._recall(h)).chunk(4, dim=-1)
        kept = decay_tapped(self.forget_gate, F.logsigmoid(f))
        w = self.write((i - kept - mass).sigmoid())
        average, mass = self.carry(torch.lerp(average, z.tanh(), w)), self.mass(torch.logaddexp(kept + mass, i))
        return self.output_gate(o.sigmoid()) * average, average, mass

    def every_step(self, x: Tensor, memory: Memory) -> Memory:
        """The memory after each step of (B, T, inputs), each (B, T, width)."""
        projected = self.project(x).unflatten(-1, (self.gates, self.heads, -1))
        time_first = projected.permute(1, 3, 0, 2, 4).flatten(3)  # (T, heads, B, gates * D)
        start = (part.unflatten(-1, (self.heads, -1)).transpose(0, 1).contiguous() for part in memory)
        found = SLSTMSequence.apply(time_first, self._matrices(), *start)
        return tuple(part.permute(2, 0, 1, 3).flatten(2) for part in found)

    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        every = [part.transpose(0, 1) for part in self.every_step(x.transpose(0, 1), memory)]
        return every[0], tuple(part[-1].clone() for part in every)

    def held(self) -> list[Tap]:
        return [self.carry, self.mass, self.state]

    def start(self, x: Tensor) -> Memory:
        h, average, mass = super().start(x)
        return h, average, mass + NOTHING

    def _matrices(self) -> Tensor:
        """The recurrent matrix of each head, (heads, D, gates * D)."""
        weight = weight_of(self.of_hidden).unflatten(0, (self.gates, self.heads, -1))
        return weight.permute(1, 3, 0, 2).flatten(2)

    def _recall(self, h: Tensor) -> Tensor:
        """(B, width) -> (B, gates * width)"""
        found = h.unflatten(-1, (self.heads, -1)).transpose(0, 1) @ self._matrices()  # (heads, B, gates * D)
        return found.unflatten(-1, (self.gates, -1)).permute(1, 2, 0, 3).flatten(1)


class SLSTM(Mixer):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.cell = SLSTMCell(config.width, config.heads)
        self.norm = HeadNorm(config.heads, config.width // config.heads)
        self.out = Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, memory: State, mask: Tensor | None) -> tuple[Tensor, State]:
        past: Any = memory or self.cell.start(x)
        with torch.autocast(x.device.type, enabled=False):
            h, past = self._unroll(x.to(self.cell.bias.dtype), past, mask)
        return self.out(self.norm(h.unflatten(-1, (self.cell.heads, -1)))), past

    def flops(self, length: int) -> float:
        return 0.0

    def held(self) -> list[Tap]:
        return self.cell.held()

    def _unroll(self, x: Tensor, past: Memory, mask: Tensor | None) -> tuple[Tensor, Memory]:
        """Steps after a row's last real one are computed, and left out of its memory."""
        if x.size(1) == 1 or self.cell.stepwise:
            return step_by_step(self.cell, x, past, mask)
        every = self.cell.every_step(x, past)
        if any(tap.watched for tap in self.cell.taps()):
            step_by_step(self.cell, x, past, mask)
        if mask is None:
            return every[0], tuple(part[:, -1].clone() for part in every)
        return every[0], tuple(at_last_step(part, before, mask) for part, before in zip(every, past, strict=True))


CELLS: dict[str, Any] = {"m": MLSTM, "s": SLSTM}
