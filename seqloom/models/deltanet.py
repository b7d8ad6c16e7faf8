"""DeltaNet (Schlag et al. 2021; Yang et al. 2024, 2025): a matrix memory that replaces what it holds under a key.

S_t = a_t (I - b_t k_t^T k_t) S_{t-1} + b_t k_t^T v_t,  y_t = q_t S_t

Queries and keys have length one. b_t, how much of the old value is replaced, and a_t, how much of the whole memory is
kept, depend on the token (layers/delta_rule.py). Linear attention only adds, so that values under similar keys mix.

state = (tokens read, (None, (last kernel-1 queries, keys and values before the convolution, S (B, H, D, D))) per layer)
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
from seqloom.layers.chunks import even_chunk
from seqloom.layers.convolution import convolve
from seqloom.layers.delta_rule import Inputs, chunked, step, unit
from seqloom.layers.linear import Linear
from seqloom.layers.norms import RMSNorm
from seqloom.layers.residual import Mixer, ResidualConfig, ResidualStack

EPS = 1e-6
SHORTEST, LONGEST = 16.0, 1024.0  # initial time constants of the memory, in tokens


class Config(ResidualConfig):
    kernel: int = Field(
        4, ge=1, le=4096, description="kernel size of the causal convolution of queries, keys, values; 1: none"
    )
    decay: bool = Field(True, description="forget at a rate that depends on the token (Gated DeltaNet)")
    negative: bool = Field(False, description="b up to 2, not 1: what a key holds can change its sign (parity)")
    gate: bool = Field(True, description="gate the output with a function of the input")
    chunk: int = Field(32, ge=1, description="tokens per chunk of the parallel form; affects speed only")

    per_head: ClassVar[int] = 1
    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"chunk": 4, "decay": False, "gate": False, "kernel": 1, "depth": 2},
        {"chunk": 5, "negative": True, "heads": 2},
    )

    def build(self) -> Backbone:
        return DeltaNet(self)


class DeltaNet(ResidualStack):
    def __init__(self, config: Config) -> None:
        super().__init__(config.model_copy(update={"kernel": 1}), partial(DeltaMemory, config))  # it convolves itself

    def look(self, x: Tensor, read: Tensor, mask: Tensor | None) -> Tensor | None:
        return mask

    def memory_taps(self) -> list[list[Tap]]:
        blocks: Any = self.blocks
        return [[block.mixer.matrix] for block in blocks]


class DeltaMemory(Mixer):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads, self.chunk = config.width, config.heads, config.chunk
        self.size, self.largest = width // config.heads, 2.0 if config.negative else 1.0
        self.qkv = Linear(width, 3 * width, bias=False)
        stack_of(3, self.qkv.weight)
        self.near = nn.Parameter(torch.empty(config.kernel, 1, 3 * width)) if config.kernel > 1 else None
        self.to_write = Linear(width, self.heads)
        self.to_decay = Linear(width, self.heads, bias=False) if config.decay else None
        if config.decay:
            self.rate, self.bias = nn.Parameter(torch.zeros(self.heads)), nn.Parameter(self._initial_bias())
        self.norm = RMSNorm(self.size, eps=EPS)
        self.gate = Linear(width, width, bias=False) if config.gate else None
        self.out = Linear(width, width, bias=False)
        if self.near is not None:
            nn.init.uniform_(self.near, -(config.kernel**-0.5), config.kernel**-0.5)  # learns faster than the identity
        self.flow = {"write_gate": "writes"} | ({"keep_gate": "keeps"} if config.decay else {})
        self.write_gate = Tap()  # (B, T, H): b, divided by 2 if it may be up to 2
        if config.decay:
            self.keep_gate = Tap()  # (B, T, H): a
        self.change = Tap()  # (B, T, H): |k_t^T u_t|, how far a token moves the memory, besides decay
        self.matrix = Tap()  # (B, H * D * D) at every token: S
        self.answers = Tap()  # (B, T, width): y, normalised

    def forward(self, x: Tensor, memory: State, mask: Tensor | None) -> tuple[Tensor, State]:
        past: Any = memory or (None, x.new_zeros(x.size(0), self.heads, self.size, self.size))
        recent, matrix = past
        # Autocast may run products in low precision; the memory keeps the dtype of the weights.
        qkv, recent = self._convolve(self.qkv(x).to(x.dtype), recent, mask)
        heads = F.silu(qkv).unflatten(-1, (3, self.heads, self.size))
        qkv = heads.permute(2, 0, 3, 1, 4).contiguous()  # (3, B, H, T, D)
        with torch.autocast(x.device.type, enabled=False):
            (q, k), (write, keep) = unit(qkv[:2]), self._gates(x, mask)
            inputs = Inputs(q, k, qkv[2], write, keep)
            y, u, matrix = self._remember(inputs, matrix)
        if self.change.watched:
            self.change((inputs.k.norm(dim=-1) * u.norm(dim=-1)).transpose(1, 2))
        y = self.answers(self.norm(y).transpose(1, 2).flatten(2))
        if self.gate is not None:
            y = y * F.silu(self.gate(x))
        return self.out(y), (recent, matrix)

    def flops(self, length: int) -> float:
        """Products within a chunk, including the masked half, and with the matrix; triangular solves are not counted,
        as torch does not count them either."""
        chunk, size = even_chunk(length, self.chunk), self.size
        each = 10 * chunk * size + 8 * size**2 + 2 * size**3 / chunk
        return self.heads * each * chunk * -(-length // chunk) / length

    def _convolve(self, qkv: Tensor, recent: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self.near is None:
            return qkv, None
        if recent is None:
            recent = qkv.new_zeros(qkv.size(0), len(self.near) - 1, qkv.size(2))
        read = torch.cat((recent, qkv), dim=1)  # (B, kernel-1+T, 3 * width)
        return convolve(read, self.near), keep_last(read, recent.size(1), mask)

    def _gates(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """b and log a, (B, H, T)"""
        write = self.largest * self.write_gate(self.to_write(x).to(x.dtype).sigmoid())
        keep = torch.zeros_like(write)
        if self.to_decay is not None:
            keep = -self.rate.exp() * F.softplus(self.to_decay(x).to(x.dtype) + self.bias)
            if self.keep_gate.edited:
                keep = self.keep_gate(keep.exp()).clamp_min(torch.finfo(keep.dtype).tiny).log()
            elif self.keep_gate.watched:
                self.keep_gate(keep.exp())
        if mask is not None:  # padding neither writes nor forgets
            write, keep = write * mask[..., None], keep * mask[..., None]
        return write.transpose(1, 2), keep.transpose(1, 2)

    def _remember(self, inputs: Inputs, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """y and u (B, H, T, D), and the matrix after the last token."""
        if self.matrix.edited:
            return self._step_by_step(inputs, past)
        if self.matrix.watched:
            self._step_by_step(inputs, past)
        return step(inputs, past) if inputs.q.size(2) == 1 else chunked(inputs, past, self.chunk)

    def _step_by_step(self, inputs: Inputs, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What takes the place of a matrix is what the token's own answer and the next token read."""
        answers, writes = [], []
        for t in range(inputs.q.size(2)):
            one = Inputs(*(x[:, :, t : t + 1] for x in inputs))
            _, u, past = step(one, past)
            past = self.matrix(past.flatten(1)).view_as(past)
            answers.append(one.q @ past)
            writes.append(u)
        return torch.cat(answers, dim=2), torch.cat(writes, dim=2), past

    def _initial_bias(self) -> Tensor:
        """Initial time constants are spaced evenly on a logarithmic scale, from SHORTEST to LONGEST."""
        steps = torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), self.heads)
        return (1 / steps).expm1().log()  # softplus of it is 1 / steps
