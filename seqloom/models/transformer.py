"""Transformer (Vaswani et al. 2017): a bidirectional encoder, and a causal decoder with cross-attention.

state = (the decoder's key-value cache, which source positions are real, (keys, values) of the source per layer)

`published` is the layout of the paper: post-norm, ReLU, sinusoidal positions. `pre_norm` normalises the inputs of
sublayers instead, which trains without careful warm-up (Xiong et al. 2020).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, matrix_flops
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.attention import SelfAttention
from seqloom.layers.cache import Cache
from seqloom.layers.dropout import Dropout
from seqloom.layers.positions import LearnedPositions, SinusoidalPositions
from seqloom.layers.source_attention import SourceAttention, visible_source
from seqloom.layers.stack import StackConfig
from seqloom.layers.transformer import EncoderBlock, FeedForward, xavier
from seqloom.layers.views import View, pairs

PRESETS: dict[str, Json] = {
    "pre_norm": {},
    "published": {"pre_norm": False, "bend": "relu"},
}

Source = tuple[Tensor, Tensor]  # keys and values of one layer


class Config(StackConfig):
    preset: Literal["pre_norm", "published"] = Field("pre_norm", description="named layout; other options override it")
    width: int = Field(256, ge=1, description="size of every hidden vector")
    depth: int = Field(3, ge=1, le=128, description="encoder blocks")
    decoder_depth: int = Field(0, ge=0, le=128, description="decoder blocks; 0: as many as encoder blocks")
    pre_norm: bool = Field(True, description="pre-norm (normalise sublayer inputs), else post-norm")
    bend: Literal["gelu", "relu"] = Field("gelu", description="activation of the feed-forward network")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="position encoding")
    context: int = Field(512, ge=1, le=2**20, description="maximum sequence length, for learned positions")
    bias: bool = Field(True, description="biases in the linear layers")

    variants: ClassVar[tuple[Json, ...]] = (
        {"depth": 2},
        {"preset": "published", "depth": 2},
        {"positions": "learned", "context": 32, "depth": 1, "decoder_depth": 2, "bias": False},
    )
    presets = PRESETS
    tables = None

    def build(self) -> Backbone:
        return Transformer(self)


class DecoderBlock(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.pre = c.pre_norm
        self.attention = SelfAttention(c.width, c.heads, 0.0, c.bias, qk_norm=False)
        self.source = SourceAttention(c.width, c.heads, c.bias)
        self.feed = FeedForward(c.width, c.feed or 4 * c.width, gated=False, bias=c.bias, bend=c.bend)
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(c.width) for _ in range(3))
        self.dropout, self.output = Dropout(c.dropout), Tap()

    def forward(
        self, x: Tensor, cache: Cache, layer: int, views: list[View], source: Source | None, visible: Tensor | None
    ) -> Tensor:
        """Without a source, cross-attention is skipped."""
        if self.pre:
            x = x + self.dropout(self.attention(self.norm_1(x), cache, layer, views, None))
            if source is not None:
                x = x + self.dropout(self.source(self.norm_2(x), *source, visible))
            return self.output(x + self.dropout(self.feed(self.norm_3(x))))
        x = self.norm_1(x + self.dropout(self.attention(x, cache, layer, views, None)))
        x = self.norm_2(x if source is None else x + self.dropout(self.source(x, *source, visible)))
        return self.output(self.norm_3(x + self.dropout(self.feed(x))))


class Transformer(Backbone):
    kind = "encoder-decoder"

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.width = c.width
        self.scale = math.sqrt(c.width) if c.tie else 1.0  # tied embeddings start small, for the output layer
        self.positions: nn.Module = SinusoidalPositions(c.width)
        if c.positions == "learned":
            self.positions, self.limit, self.reach = LearnedPositions(c.context, c.width), c.context, c.context
        self.dropout = Dropout(c.dropout)
        self.encoder = nn.ModuleList(
            EncoderBlock(c.width, c.heads, c.feed, c.pre_norm, c.bend, c.bias, c.dropout) for _ in range(c.depth)
        )
        self.decoder = nn.ModuleList(DecoderBlock(c) for _ in range(c.decoder_depth or c.depth))
        self.encoder_norm = nn.LayerNorm(c.width) if c.pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(c.width) if c.pre_norm else nn.Identity()
        xavier(self)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x, visible = self._with_positions(x, torch.arange(x.size(1), device=x.device)), visible_source(mask)
        for block in self.encoder:
            x = block(x, visible)
        return self.encoder_norm(x)

    def only_encode(self) -> None:
        self.decoder, self.decoder_norm = nn.ModuleList(), nn.Identity()

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        source = self.encode(context, mask)
        blocks: Any = self.decoder
        return None, mask, tuple(block.source.read(source) for block in blocks)

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        known: Any = state or (None, None, None)
        past, real, sources = known
        cache, visible = Cache(past, x, mask), visible_source(real)
        places = cache.places(x.device)
        x = self._with_positions(x, places if mask is None else places * mask)  # padding may lie past the last position
        views = cache.views(x.device)
        for layer, block in enumerate(self.decoder):
            x = block(x, cache, layer, views, sources and sources[layer], visible)
        return self.finish(x), (cache.close(), real, sources)

    def stages(self) -> list[nn.Module]:
        return [*self.encoder, *self.decoder]

    def layer_taps(self) -> list[Tap]:
        blocks: Any = self.decoder if len(self.decoder) else self.encoder
        return [block.output for block in blocks]

    def encoder_taps(self) -> list[Tap]:
        blocks: Any = self.encoder if len(self.decoder) else []
        return [block.output for block in blocks]

    def finish(self, hidden: Tensor) -> Tensor:
        found: Tensor = (self.decoder_norm if len(self.decoder) else self.encoder_norm)(hidden)
        return found

    def flops(self, length: int) -> float:
        """Per target token, for a source of the same length."""
        return matrix_flops(self) + 4.0 * self.width * (
            length * (len(self.encoder) + len(self.decoder)) + pairs(length, 0) / length * len(self.decoder)
        )

    def _with_positions(self, x: Tensor, places: Tensor) -> Tensor:
        return self.dropout((x if self.scale == 1 else x * self.scale) + self.positions(places))
