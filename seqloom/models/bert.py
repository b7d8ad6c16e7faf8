"""BERT (Devlin et al. 2019): an encoder-only Transformer. Every position attends to all others, left and right.

There is no state: the whole input is needed at once, so sequences can be neither continued nor generated.

`published` is the layout of the paper: embeddings are normalised, then each residual sum (post-norm). `pre_norm`
normalises the inputs of sublayers instead, which trains from scratch without careful warm-up (Xiong et al. 2020).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, matrix_flops
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.positions import LearnedPositions, SinusoidalPositions
from seqloom.layers.source_attention import visible_source
from seqloom.layers.stack import StackConfig
from seqloom.layers.transformer import EncoderBlock, xavier

PRESETS: dict[str, Json] = {"pre_norm": {}, "published": {"pre_norm": False}}


class Config(StackConfig):
    preset: Literal["pre_norm", "published"] = Field("pre_norm", description="named layout; other options override it")
    context: int = Field(256, ge=1, le=2**20, description="maximum sequence length, for learned positions")
    positions: Literal["learned", "sinusoidal"] = Field("learned", description="position encoding")
    pre_norm: bool = Field(True, description="pre-norm (normalise sublayer inputs), else post-norm")
    bend: Literal["gelu", "gelu_exact", "relu"] = Field(
        "gelu", description="activation of the feed-forward network; gelu: its tanh form"
    )
    bias: bool = Field(True, description="biases in the linear layers")
    eps: float = Field(1e-5, gt=0, description="epsilon of the normalisation layers")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of hidden values dropped in training")

    variants: ClassVar[tuple[Json, ...]] = (
        {"depth": 2},
        {"preset": "published", "depth": 2},
        {"positions": "sinusoidal", "bend": "relu", "bias": False, "depth": 1},
    )
    presets = PRESETS
    per_head = 1

    def build(self) -> Backbone:
        return Bert(self)

    def reading(self, length: int) -> Self:
        return self.model_copy(update={"context": length})


class Bert(Backbone):
    kind = "bidirectional"

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.width = c.width
        self.positions: nn.Module = SinusoidalPositions(c.width)
        if c.positions == "learned":
            self.positions, self.limit, self.reach = LearnedPositions(c.context, c.width), c.context, c.context
        self.norm = nn.Identity() if c.pre_norm else nn.LayerNorm(c.width, c.eps)
        self.dropout = Dropout(c.dropout)
        self.blocks = nn.ModuleList(
            EncoderBlock(c.width, c.heads, c.feed, c.pre_norm, c.bend, c.bias, c.dropout, c.eps) for _ in range(c.depth)
        )
        self.last_norm = nn.LayerNorm(c.width, c.eps) if c.pre_norm else nn.Identity()
        xavier(self)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        places = torch.arange(x.size(1), device=x.device)
        x, visible = self.dropout(self.norm(x + self.positions(places))), visible_source(mask)
        for block in self.blocks:
            x = block(x, visible)
        return self.finish(x)

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(x, mask), None

    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def layer_taps(self) -> list[Tap]:
        blocks: Any = self.blocks
        return [block.output for block in blocks]

    def finish(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.last_norm(hidden)
        return found

    def flops(self, length: int) -> float:
        """With the scores of every pair of tokens and the weighted sum of values."""
        return matrix_flops(self) + 4.0 * self.width * length * len(self.blocks)
