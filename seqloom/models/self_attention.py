"""Self-attention without parameters: every output is an average of the inputs, weighted by how alike they are.

y_i = sum_j w_ij x_j,  w_ij = softmax_j(x_i . x_j / sqrt(width))

All that is learned is in the embedding and the output layer. Without positions, the order of what it sees changes
nothing. In a Transformer, learned matrices turn the inputs into queries, keys and values, which here are the same.

state = (tokens read, tokens dropped, slots written, (the vectors read, nothing) per layer); bidirectional: none
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.choice import Choice, Demand
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.attention import DotProductAttention
from seqloom.layers.cache import Cache
from seqloom.layers.cache_slots import CacheSlots
from seqloom.layers.dropout import Dropout
from seqloom.layers.positions import SinusoidalPositions
from seqloom.layers.source_attention import visible_source
from seqloom.layers.views import View, pairs


class Config(ModelConfig):
    depth: int = Field(1, ge=1, le=128, description="how many times the outputs attend to each other again")
    bidirectional: bool = Field(False, description="every position sees all others; for tasks on whole sequences")
    scaled: bool = Field(True, description="divide scores by sqrt(width)")
    residual: bool = Field(False, description="add the input of each layer to its output")
    positions: Literal["none", "sinusoidal"] = Field("none", description="position encoding; none: order is not seen")
    context: int = Field(128, ge=1, le=2**20, description="context length in tokens, if not bidirectional")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"depth": 2, "residual": True, "positions": "sinusoidal"},
        {"scaled": False},
        {"bidirectional": True, "depth": 2},
        {"bidirectional": True, "positions": "sinusoidal", "residual": True},
    )
    defaults: ClassVar[Json] = {"task.length": 128}
    tables: ClassVar[float | None] = 0.3  # with 1, a vector is so much like itself that it attends to nothing else

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        return [Choice("model.bidirectional", True, "the task reads whole sequences")] if demand.whole else []

    def build(self) -> Backbone:
        return PlainSelfAttention(self)

    def reading(self, length: int) -> Self:
        return self.model_copy(update={"context": length})


class Layer(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.attention = DotProductAttention(1, 1, 0.0, scale=None if c.scaled else 1.0)
        self.residual, self.dropout, self.output = c.residual, Dropout(c.dropout), Tap()

    def forward(self, x: Tensor, vectors: Tensor, views: list[View]) -> Tensor:
        """`vectors` (B, 1, S, width): keys and values at once."""
        y = self.dropout(self.attention.attend(x[:, None], vectors, vectors, views)[:, 0])
        found: Tensor = self.output(x + y if self.residual else y)
        return found


class PlainSelfAttention(Backbone):
    slots = CacheSlots()

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.kind = "bidirectional" if c.bidirectional else "causal"
        self.width, self.limit = c.width, None if c.bidirectional else c.context
        self.positions = SinusoidalPositions(c.width) if c.positions == "sinusoidal" else None
        self.dropout = Dropout(c.dropout)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.depth))

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if self.kind == "bidirectional":
            return self.encode(x, mask), None
        cache = Cache(state, x, mask)
        x, views = self._placed(x, cache.places(x.device)), cache.views(x.device)
        for n, layer in enumerate(self.layers):
            vectors, _ = cache.extend(n, x[:, None], x[:, None, :, :0])  # values are the keys: nothing more to keep
            x = layer(x, vectors, views)
        return x, cache.close()

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.kind == "causal":
            return self(x, None, mask)[0]
        length = x.size(1)
        everything = torch.ones(1, 1, 1, length, dtype=torch.bool, device=x.device)
        visible = visible_source(mask)
        views = [View(slice(0, length), slice(0, length), everything if visible is None else visible)]
        x = self._placed(x, torch.arange(length, device=x.device))
        for layer in self.layers:
            x = layer(x, x[:, None], views)
        return x

    def stages(self) -> list[nn.Module]:
        return list(self.layers)

    def layer_taps(self) -> list[Tap]:
        layers: Any = self.layers
        return [layer.output for layer in layers]

    def flops(self, length: int) -> float:
        """Scores and weighted sums of all pairs, those of the future included."""
        return 4.0 * self.width * pairs(length, 0) / length * len(self.layers)

    def _placed(self, x: Tensor, places: Tensor) -> Tensor:
        return self.dropout(x if self.positions is None else x + self.positions(places))
