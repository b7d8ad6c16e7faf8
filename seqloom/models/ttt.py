"""TTT (Sun et al. 2024): the memory is a small model, trained on the sequence as it is read (test-time training).

Every token trains f(k) = k + LN(model(k)) to reconstruct v, and outputs f(q). The K tokens of a mini-batch take their
gradients at the same weights, so that all of their steps are computed in parallel (layers/fast_weights.py).

state = (tokens read, (learned, unfinished) per layer), each with one (B, H, D + 1, D) tensor for a matrix of the model:
  learned      update of the initial weights, accumulated over finished mini-batches
  unfinished   summed gradients of the current mini-batch; rows may be at different places in it
Without a state the update is zero. Padding has learning rate zero and takes no position: it changes nothing.
If a state is detached, the initial weights still get gradients from the tokens after it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, stack_of
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.fast_weights import EPS, Descent, Gradient, Weights, norm_gradient, normalise, with_one
from seqloom.layers.linear import Linear
from seqloom.layers.mini_batches import MiniBatches
from seqloom.layers.positions import Rotary
from seqloom.layers.residual import Mixer, ResidualConfig, ResidualStack

BASE_RATES = {"linear": 1.0, "mlp": 0.1}


class Config(ResidualConfig):
    inner: Literal["linear", "mlp"] = Field("linear", description="inner model: one linear layer, or two with GELU")
    mini_batch: int = Field(16, ge=1, description="tokens whose gradients are taken at the same weights")
    base_rate: float = Field(
        0.0, ge=0, description="maximum inner learning rate, times the head size; 0: 1 (linear), 0.1 (mlp)"
    )
    forget: bool = Field(False, description="decay the update, at a rate learned per head (not in the paper)")
    gate: bool = Field(False, description="gate the output with a function of the input")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"mini_batch": 4, "gate": True, "forget": True},
        {"mini_batch": 5, "inner": "mlp", "heads": 2, "depth": 2},
        {"mini_batch": 1, "base_rate": 0.5, "kernel": 1},
    )

    def build(self) -> Backbone:
        return TTT(self)


class TTT(ResidualStack):
    def __init__(self, config: Config) -> None:
        super().__init__(config, partial(Learner, config))
        self.mini_batch = config.mini_batch

    def look(self, x: Tensor, read: Tensor, mask: Tensor | None) -> MiniBatches:
        return MiniBatches(x, read, mask, self.mini_batch)


class Learner(Mixer):
    """Queries, keys, values and learning rates from the input; the inner model's outputs, normalised and projected."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.base_rate = config.base_rate or BASE_RATES[config.inner]
        self.qkv = Linear(width, 3 * width, bias=False)
        stack_of(3, self.qkv.weight)
        self.to_rate = Linear(width, self.heads)
        self.model = InnerModel(self.heads, width // self.heads, config)
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.gate = Linear(width, width, bias=False) if config.gate else None
        self.out = Linear(width, width, bias=False)
        self.rate = Tap()

    def forward(self, x: Tensor, memory: State, tokens: MiniBatches) -> tuple[Tensor, State]:
        exact = self.model.gain.dtype
        qkv = self.qkv(x).to(exact)
        rate = self.rate(self.base_rate / self.model.size * self.to_rate(x).to(exact).sigmoid())  # (B, T, H)
        if tokens.mask is not None:
            rate = rate * tokens.mask[..., None]  # padding trains nothing
        with torch.autocast(x.device.type, enabled=False):  # small updates need full precision
            outputs, memory = self.model(qkv, rate, memory, tokens)
        y = self.norm(outputs)
        if self.gate is not None:
            y = y * F.gelu(self.gate(x), approximate="tanh")
        return self.out(y), memory

    def flops(self, length: int) -> float:
        return self.model.flops(length)


class InnerModel(nn.Module):
    """H small models: their initial weights, and their training on keys, values and learning rates."""

    def __init__(self, heads: int, size: int, config: Config) -> None:
        super().__init__()
        self.heads, self.size, self.mini_batch = heads, size, config.mini_batch
        self.sizes = ((size, size),) if config.inner == "linear" else ((size, 4 * size), (4 * size, size))
        weights = [0.02 * torch.randn(heads, inputs, outputs) for inputs, outputs in self.sizes]
        self.start = nn.ParameterList(F.pad(w, (0, 0, 0, 1)) for w in weights)  # the last row is the bias
        self.gain = nn.Parameter(torch.ones(heads, 1, size))
        self.bias = nn.Parameter(torch.zeros(heads, 1, size))
        self.offset = nn.Parameter(torch.zeros(config.mini_batch))
        self.keep = nn.Parameter(self._initial_keep()) if config.forget else None
        self.rotary = Rotary(size)
        # Per token and head (B, T, H): |f(k) - v|^2 / 2 before the token's own step and after it, and how far the token
        # moves the weights (norm).
        self.error, self.error_after, self.change = Tap(), Tap(), Tap()

    def forward(self, qkv: Tensor, rate: Tensor, memory: State, tokens: MiniBatches) -> tuple[Tensor, State]:
        """(B, T, 3 * H * D) and (B, T, H) -> (B, T, H * D)"""
        q, k, v = tokens.split(qkv, 3 * self.heads).chunk(3, dim=2)  # (M, B, H, K, D) each
        angles = self.rotary.angles(tokens.places())
        q, k = Rotary.turn(q, angles), Rotary.turn(k, angles)
        target = v - k
        gradients = self._gradients(target, tokens.split(rate, self.heads))
        q_1, k_1 = with_one(q), with_one(k)
        descent, outputs, given, after = self._descend(q_1, k_1, gradients, memory, tokens)
        if self.error.watched:
            self.error(tokens.merge(self._loss(given, target)))
        if self.error_after.watched:
            self.error_after(tokens.merge(self._loss(self._descend(k_1, k_1, gradients, memory, tokens)[1], target)))
        if self.change.watched:
            self.change(tokens.merge(descent.changes().view(*q.shape[:-1], 1)))
        return tokens.merge(q + self._output(outputs.view_as(q))), after

    def flops(self, length: int) -> float:
        """Products of keys and queries with the weights, each other and the gradients, including empty last slots."""
        slots = min(length, self.mini_batch)
        each = sum(6 * (i + 1) * o + 2 * slots * (i + 1 + o) for i, o in self.sizes)
        each += sum(2 * i * o for i, o in self.sizes[1:])  # backward to the previous layer
        return self.heads * each * slots * -(-length // slots) / length

    def _gradients(self, target: Tensor, rate: Tensor) -> list[Gradient]:
        """Gradients of |gain * LN(z) + bias - target|^2 / 2 at z, times the learning rate, one per mini-batch."""
        at_norm = rate * self.gain.square(), rate * self.gain * (self.bias - target)  # a * LN(z) + c
        mini_batches = zip(*(x.flatten(1, 2) for x in at_norm), strict=True)
        return [partial(norm_gradient, a=a, c=c) for a, c in mini_batches]

    def _descend(
        self, q: Tensor, k: Tensor, gradients: list[Gradient], memory: State, tokens: MiniBatches
    ) -> tuple[Descent, Tensor, Tensor, State]:
        """The inner model after it, its outputs for queries and for keys, and the updated memory."""
        past: Any = memory or (self._zeros(q.size(1)), self._zeros(q.size(1)))
        learned, sums = (tuple(x.flatten(0, 1) for x in part) for part in past)
        start = tuple(w.repeat(q.size(1), 1, 1) for w in self.start)  # (B * H, D + 1, D)
        keep = None if self.keep is None else self.keep.sigmoid().repeat(q.size(1), 1, 1)
        last = self._tau(torch.tensor([self.mini_batch - 1], device=q.device))
        descent = Descent(start, learned, None if tokens.fresh else sums, last, keep)
        form = descent.primal if tokens.single else descent.dual
        outputs, given = form(q.flatten(1, 2), k.flatten(1, 2), gradients, self._tau(tokens.places()), tokens.ends)
        unfinished = self._zeros(q.size(1)) if descent.sums is None else self._by_row(descent.sums)
        return descent, outputs, given, (self._by_row(descent.learned), unfinished)

    def _initial_keep(self) -> Tensor:
        """Logits of the factor by which each mini-batch decays the update: time constants of 64 to 2048 tokens."""
        tokens = torch.logspace(math.log10(64), math.log10(2048), self.heads)
        return torch.exp(-self.mini_batch / tokens).clamp_min(1e-6).logit()[:, None, None]

    def _loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """(M * B * H, K, D) -> (M, B, H, K, 1)"""
        return (self._output(outputs.view_as(target)) - target).square().sum(-1, keepdim=True) / 2

    def _output(self, z: Tensor) -> Tensor:
        return torch.addcmul(self.bias, self.gain, normalise(z))

    def _tau(self, places: Tensor) -> Tensor:
        """max(0, 1 / t + offset_t / t) for the t-th token: (K, 1); (B * H, 1, 1) where rows differ."""
        tau = ((1 + self.offset[places]) / (places + 1)).relu()
        return tau[:, None] if tau.dim() == 1 else tau.repeat_interleave(self.heads, dim=0)[:, :, None]

    def _zeros(self, rows: int) -> Weights:
        return tuple(w.new_zeros(rows, *w.shape) for w in self.start)

    def _by_row(self, parts: Weights) -> Weights:
        return tuple(x.unflatten(0, (-1, self.heads)) for x in parts)
