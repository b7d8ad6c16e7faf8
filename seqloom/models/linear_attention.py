"""Linear attention (Katharopoulos et al. 2020): attention without the softmax, with one matrix per head as its memory.

S_t = S_{t-1} + k_t^T v_t,  y_t = q_t S_t = sum_{s<=t} (q_t . k_s) v_s

As published (`average`), queries and keys are mapped to elu(x) + 1, and y_t is divided by the sum of its weights.

state = (tokens read, S (B, H, D, D) per layer); with `average` S has one more column, the sum of the keys
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, stack_of
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.chunks import even_chunk
from seqloom.layers.linear import Linear
from seqloom.layers.norms import RMSNorm
from seqloom.layers.residual import Mixer, ResidualConfig, ResidualStack


class Config(ResidualConfig):
    average: bool = Field(False, description="positive features, weights that sum to one; else RMSNorm on the output")
    chunk: int = Field(64, ge=1, description="tokens per chunk of the parallel form; affects speed only")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"chunk": 4, "kernel": 1, "depth": 2},
        {"chunk": 5, "average": True, "heads": 2},
    )

    def build(self) -> Backbone:
        return ResidualStack(self, partial(MatrixMemory, self))


class MatrixMemory(Mixer):
    flow: ClassVar[dict[str, str]] = {"write": "writes"}

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads, self.chunk = config.width, config.heads, config.chunk
        self.size, self.average = width // config.heads, config.average
        self.qkv = Linear(width, 3 * width, bias=False)
        stack_of(3, self.qkv.weight)
        self.norm = nn.Identity() if config.average else RMSNorm(self.size)
        self.out = Linear(width, width, bias=False)
        self.answers = Tap()
        self.write = Tap()  # (B, T, H): |k_t^T v_t|, how much a token adds to the memory

    def forward(self, x: Tensor, memory: State, mask: Tensor | None) -> tuple[Tensor, State]:
        # Autocast may run this product in low precision; the memory keeps the dtype of the weights.
        qkv = self.qkv(x).to(x.dtype).unflatten(-1, (3, self.heads, self.size))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        if self.average:
            q, k, v = F.elu(q) + 1, F.elu(k) + 1, F.pad(v, (0, 1), value=1.0)
        if mask is not None:
            k = k * mask[:, None, :, None]  # padding is not stored
        if self.write.watched:
            self.write((k.norm(dim=-1) * v[..., : self.size].norm(dim=-1)).transpose(1, 2))
        past = k.new_zeros(*k.shape[:2], self.size, v.size(-1)) if memory is None else memory
        assert isinstance(past, Tensor)
        with torch.autocast(x.device.type, enabled=False):
            y, past = attend(q, k, v, past, self.chunk)
        if self.average:
            y = y[..., :-1] / y[..., -1:].clamp_min(1e-6)  # all-padding rows have no weights
        return self.out(self.answers(self.norm(y).transpose(1, 2).flatten(2))), past

    def flops(self, length: int) -> float:
        """Scores and weighted sums within a chunk, including the masked half; reading and updating the matrix."""
        chunk, values = even_chunk(length, self.chunk), self.size + self.average
        each = 2 * chunk * (self.size + values) + 4 * self.size * values
        return self.heads * each * chunk * -(-length // chunk) / length


def attend(q: Tensor, k: Tensor, v: Tensor, past: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """tril(q k^T) v + q past, and past + k^T v: (B, H, T, D), chunk by chunk without a loop."""
    steps = q.size(2)
    if steps == 1:
        past = past + k.mT * v
        return q @ past, past
    chunk = even_chunk(steps, chunk)
    q, k, v = (F.pad(x, (0, 0, 0, -steps % chunk)).unflatten(2, (-1, chunk)) for x in (q, k, v))  # (B, H, M, chunk, D)
    after = (k.mT @ v).cumsum(2) + past[:, :, None]
    before = torch.cat((past[:, :, None], after[:, :, :-1]), dim=2)
    y = q @ before + (q @ k.mT).tril() @ v
    return y.flatten(2, 3)[:, :, :steps], after[:, :, -1].clone()  # a view would keep the whole tensor alive
