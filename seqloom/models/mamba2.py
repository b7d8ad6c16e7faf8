"""Mamba-2 (Dao & Gu 2024): a selective state space; each head's memory is a matrix that decays as the input says.

a_t = exp(-dt_t A),  S_t = a_t S_{t-1} + dt_t B_t^T x_t,  y_t = C_t S_t + D x_t

dt, B, C and x are functions of the input, the last three after a short causal convolution; A and D are learned, one per
head. All heads share B and C. The output is gated by z and normalised.

state = (tokens read, (last kernel-1 inputs of the convolution, S (B, 1, state, heads * size)) per layer)
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, stack_of
from seqloom.core.rows import Json
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.layers.convolution import convolve
from seqloom.layers.decayed_memory import decay_tapped, remember, remember_flops
from seqloom.layers.linear import Linear
from seqloom.layers.norms import RMSNorm
from seqloom.layers.residual import Mixer, ResidualConfig, ResidualStack

QUICKEST, SLOWEST = 2.0, 512.0  # initial time constants of the heads, in steps


class Config(ResidualConfig):
    width: int = Field(168, ge=1, description="size of every hidden vector")
    heads: int = Field(4, ge=1, description="heads of size expand x width / heads, each with its own decay")
    kernel: int = Field(
        4, ge=1, le=4096, description="kernel size of the causal convolution in the mixer; 1: current input only"
    )
    feed: int = Field(
        0, ge=0, description="hidden size of a gated feed-forward after each mixer; 0: none, as published"
    )
    expand: int = Field(2, ge=1, description="size of the mixer's inner vectors, in multiples of the width")
    state: int = Field(
        0, ge=0, description="size of B and C: each head's memory has state x size numbers; 0: 64, at most the width"
    )
    chunk: int = Field(64, ge=1, description="tokens per chunk of the parallel form; affects speed only")

    per_head: ClassVar[int] = 1
    knobs: ClassVar[tuple[str, ...]] = ("width", "state")
    variants: ClassVar[tuple[Json, ...]] = (
        {"state": 6},
        {"chunk": 5, "kernel": 1, "depth": 2, "state": 3},
        {"chunk": 4, "heads": 2, "expand": 1, "feed": 7, "depth": 2},
    )

    @property
    def block_kernel(self) -> int:
        return 1  # the convolution is part of the mixer

    @property
    def block_feed(self) -> int:
        return self.feed

    def build(self) -> Backbone:
        stack = ResidualStack(self, partial(StateSpace, self))
        mixers: list[Any] = [part for part in stack.modules() if isinstance(part, StateSpace)]
        for mixer in mixers:  # products of three small numbers, x, B and C, learn slowly
            nn.init.normal_(mixer.into.weight, std=self.width**-0.5)
        return stack


class StateSpace(Mixer):
    flow: ClassVar[dict[str, str]] = {"write": "writes", "forget_gate": "keeps"}

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.states, self.chunk = config.heads, config.state or min(64, config.width), config.chunk
        self.inner = config.expand * config.width
        self.sizes = [self.inner, self.inner + 2 * self.states, self.heads]  # z; x, B and C; dt
        self.into = Linear(config.width, sum(self.sizes), bias=False)
        stack_of([self.inner, self.inner, self.states, self.states, self.heads], self.into.weight)
        self.near = nn.Parameter(torch.zeros(config.kernel, 1, self.sizes[1]))
        self.near_bias = nn.Parameter(torch.zeros(self.sizes[1]))
        nn.init.ones_(self.near.data[-1])  # initially only the current input
        steps = torch.logspace(math.log10(QUICKEST), math.log10(SLOWEST), self.heads)
        self.dt_bias = nn.Parameter((1 / steps).expm1().log())  # softplus of it is 1 / steps
        self.log_a, self.skip = nn.Parameter(torch.zeros(self.heads)), nn.Parameter(torch.ones(self.heads))
        self.norm = RMSNorm(self.inner, eps=1e-5)
        self.out = Linear(self.inner, config.width, bias=False)
        # (B, T, H) each: a, and |dt_t B_t^T x_t|, how much a token adds to the memory
        self.forget_gate, self.write = Tap(), Tap()
        self.answers = Tap()

    def forward(self, x: Tensor, memory: State, mask: Tensor | None) -> tuple[Tensor, State]:
        past: Any = memory or self._start(x)
        recent, matrix = past
        # Autocast may run this product in low precision; the memory keeps the dtype of the weights.
        z, read, dt = self.into(x).to(x.dtype).split(self.sizes, dim=-1)
        read = torch.cat((recent, read), dim=1)  # (B, kernel-1+T, inner + 2 * state)
        mixed = F.silu(convolve(read, self.near) + self.near_bias)
        x, b, c = mixed.split([self.inner, self.states, self.states], dim=-1)
        dt = F.softplus(dt + self.dt_bias)  # (B, T, H)
        if mask is not None:
            dt = dt * mask[..., None]  # padding is not stored, and nothing is forgotten for it
        decay = decay_tapped(self.forget_gate, -dt * self.log_a.exp())
        x = x.unflatten(-1, (self.heads, -1))  # (B, T, H, size)
        values = x * dt[..., None]
        if self.write.watched:
            self.write(values.norm(dim=-1) * b.norm(dim=-1, keepdim=True))
        with torch.autocast(x.device.type, enabled=False):
            y, matrix = remember(c[:, None], b[:, None], values.flatten(2)[:, None], decay[:, None], matrix, self.chunk)
        y = torch.addcmul(y[:, 0], x.flatten(2), self.skip.repeat_interleave(x.size(-1)))
        y = self.answers(self.norm(y * F.silu(z)))
        return self.out(y), (keep_last(read, recent.size(1), mask), matrix)

    def flops(self, length: int) -> float:
        return remember_flops(length, self.chunk, 1, self.heads, self.states, self.inner // self.heads)

    def _start(self, x: Tensor) -> tuple[Tensor, Tensor]:
        recent = x.new_zeros(x.size(0), len(self.near) - 1, self.sizes[1])
        return recent, x.new_zeros(x.size(0), 1, self.states, self.inner)
