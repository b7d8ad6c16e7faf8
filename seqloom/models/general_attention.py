"""General attention model (Brauwers & Frasincar 2022): features, a query, attention and an output, each a choice.

    F = features(x)          embedding, convolution, gru, lstm or transformer
    q = query(F)             a learned vector, the last state, or each position
    c = attention(q, F)      K, V from F; e = score(q, K); a = align(e); c = a V
    y = output(F, c)         features and context joined, their sum, or the context alone

There is no state: the whole input is needed at once. With one query, every position has the same context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, at_end, matrix_flops
from seqloom.core.choice import Choice, Demand
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.general_attention import ALIGNED, GeneralAttention, check_choices
from seqloom.layers.linear import Linear
from seqloom.layers.positions import SinusoidalPositions
from seqloom.layers.recurrent import Cell, Recurrent
from seqloom.layers.scores import SCORES
from seqloom.layers.source_attention import visible_source
from seqloom.layers.transformer import EncoderBlock, xavier
from seqloom.models.gru import GRUCell
from seqloom.models.lstm import LSTMCell

CELLS: dict[str, Callable[[int, int], Cell]] = {"gru": GRUCell, "lstm": LSTMCell}


class Config(ModelConfig):
    features: Literal["embedding", "convolution", "gru", "lstm", "transformer"] = Field(
        "gru", description="feature model; gru and lstm read in both directions"
    )
    depth: int = Field(1, ge=1, le=128, description="layers of the feature model")
    kernel: int = Field(5, ge=1, le=4096, description="features=convolution: positions seen at once")
    query: Literal["learned", "last", "each"] = Field(
        "learned", description="query model: one learned vector, the features' final vector, or each position's feature"
    )
    score: str = Field("additive", description=f"attention score: {', '.join(SCORES)}")
    align: str = Field("soft", description=f"attention alignment: {', '.join(ALIGNED)}")
    heads: int = Field(1, ge=1, description="attention heads")
    hops: int = Field(1, ge=1, le=128, description="attention hops")
    multi: bool = Field(False, description="separate attention weights per dimension (score=additive)")
    window: int = Field(5, ge=1, description="local alignment: positions to each side")
    output: Literal["join", "sum", "context"] = Field(
        "join", description="output model: tanh(W [feature; context]), feature + context, or the context alone"
    )

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"features": "embedding", "query": "each", "score": "scaled_dot", "heads": 2, "output": "sum"},
        {"features": "convolution", "kernel": 3, "query": "last", "score": "general", "hops": 2},
        {"features": "lstm", "depth": 2, "query": "last", "score": "biased_general", "align": "sparsemax"},
        {"features": "transformer", "query": "each", "score": "activated_general", "align": "local_monotonic"},
        {"features": "embedding", "multi": True, "output": "context"},
        {"query": "each", "score": "similarity", "align": "local_predictive"},
    )

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        if not demand.whole:
            return []
        settings: Json = {"model.dropout": 0.3, "train.optimizer": "adamw", "train.rate": 2e-3}
        settings |= {"model.query": "each"} if demand.dense else {}
        return [Choice(path, value, demand.size) for path, value in settings.items()]

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_choices(self.width, self.score, self.align, self.heads, self.multi)
        if self.features in CELLS and self.width % 2:
            raise ValueError(f"width={self.width} must be even: each direction gets half of it")
        if self.features == "convolution" and self.kernel % 2 == 0:
            raise ValueError(f"kernel={self.kernel} must be odd: as many positions to the left as to the right")
        return self

    def build(self) -> Backbone:
        return AttentionModel(self)


class Embedding(Backbone):
    """The inputs and their positions themselves, or after convolutions or Transformer blocks."""

    kind = "bidirectional"

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.width, self.dropout, self.positions = c.width, Dropout(c.dropout), SinusoidalPositions(c.width)
        self.layers = nn.ModuleList()
        if c.features == "convolution":
            self.layers.extend(nn.Conv1d(c.width, c.width, c.kernel, padding="same") for _ in range(c.depth))
        if c.features == "transformer":
            blocks = [EncoderBlock(c.width, c.heads, 0, True, "gelu", True, c.dropout) for _ in range(c.depth)]
            self.layers.extend(blocks)
            for block in blocks:
                xavier(block)

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        visible = visible_source(mask)
        x = self.dropout(x + self.positions(torch.arange(x.size(1), device=x.device)))
        for layer in self.layers:
            if isinstance(layer, EncoderBlock):
                x = layer(x, visible)
            else:
                seen = x if mask is None else x * mask[..., None]  # padding is as if nothing was there
                x = x + layer(seen.transpose(1, 2)).transpose(1, 2).relu()
        return x, None


class AttentionModel(Backbone):
    kind = "bidirectional"

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.width, self.asks, self.joins = c.width, c.query, c.output
        cell = CELLS.get(c.features)
        self.features: Backbone = Embedding(c)
        if cell is not None:
            self.features = Recurrent(cell, c.width, c.width, 1.0, c.depth, c.dropout, bidirectional=True)
        self.question = nn.Parameter(torch.randn(c.width) / c.width**0.5) if c.query == "learned" else None
        self.attention = GeneralAttention(
            c.width, c.width, c.width, score=c.score, align=c.align, heads=c.heads, hops=c.hops, multi=c.multi,
            window=c.window,
        )  # fmt: skip
        self.join = Linear(2 * c.width, c.width) if c.output == "join" else None
        self.dropout = Dropout(c.dropout)
        self.featured, self.output = Tap(), Tap()  # (B, T, width): the features, and what becomes of them

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(x, mask), None

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        features = self._features(x, mask)
        contexts = self.attention(self._query(features, mask), self.attention.read(features, mask))
        found: Tensor = self.output(self._join(features, contexts.expand_as(features)))
        return found

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the query was answered, joined with the final features."""
        features = self._features(x, mask)
        query = self._query(features, mask)
        contexts = self.attention(query, self.attention.read(features, mask))
        last = at_end(contexts, mask) if self.asks == "each" else contexts[:, 0]
        return self._join(self._last(features, mask), last)

    def _features(self, x: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.featured(self.features.encode(x, mask))
        return found

    def _query(self, features: Tensor, mask: Tensor | None) -> Tensor:
        """(B, 1 or T, width)"""
        if self.question is not None:
            return self.question.expand(len(features), 1, -1)
        return self._last(features, mask)[:, None] if self.asks == "last" else features

    def _last(self, features: Tensor, mask: Tensor | None) -> Tensor:
        """The final vector; of features read in both directions, the ends of both."""
        last = at_end(features, mask)
        if not isinstance(self.features, Recurrent):
            return last
        half = self.width // 2
        return torch.cat((last[:, :half], features[:, 0, half:]), dim=-1)

    def _join(self, features: Tensor, contexts: Tensor) -> Tensor:
        if self.join is not None:
            contexts = self.join(torch.cat((features, contexts), dim=-1)).tanh()
        elif self.joins == "sum":
            contexts = features + contexts
        return self.dropout(contexts)

    def stages(self) -> list[nn.Module]:
        return [self.features, self.attention]

    def layer_taps(self) -> list[Tap]:
        return [self.featured, self.output]

    def flops(self, length: int) -> float:
        """Per token; one query serves all of them."""
        share = 1.0 if self.asks == "each" else 1 / length
        own = matrix_flops(self.features) + (0.0 if self.join is None else matrix_flops(self.join))
        for part in self.features.modules():
            if isinstance(part, nn.Conv1d):
                own += 2.0 * part.weight.numel()
            if isinstance(part, EncoderBlock):
                own += 4.0 * self.width * length
        return own + self.attention.flops_to_read() + share * self.attention.flops_per_query(length)
