"""GPT (Radford et al. 2018, 2019): a decoder-only Transformer, which attends to all tokens read so far.

state = (tokens read, tokens dropped, slots written, (keys, values) per layer): grows by one key and value per token
and layer; with a window its size is bounded, and with rotary positions as well there is no limit on the length

Three layouts: `gpt2` is the published one (learned positions, LayerNorm, GELU, biases); `llama` that of most open
models since (rotary positions, RMSNorm, gated feed-forward; Touvron et al. 2023, Mistral with a window); `modern` adds
QK-norm and zero-initialised residual branches.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.attention import SelfAttention
from seqloom.layers.cache import Cache
from seqloom.layers.cache_slots import CacheSlots
from seqloom.layers.decode import Step, one_token_steps
from seqloom.layers.dropout import Dropout
from seqloom.layers.kernels.holder import Compiled
from seqloom.layers.kernels.transformer import Blocks
from seqloom.layers.norms import make_norm
from seqloom.layers.positions import LearnedPositions, Rotary, Scaling, SinusoidalPositions
from seqloom.layers.stack import StackConfig, outputs, start_small
from seqloom.layers.transformer import Block, FeedForward
from seqloom.layers.views import pairs

PRESETS: dict[str, Json] = {
    "modern": {},
    "llama": {"qk_norm": False, "zero_init": False, "eps": 1e-6},
    "gpt2": {
        "positions": "learned",
        "norm": "layer",
        "gated": False,
        "qk_norm": False,
        "zero_init": False,
        "bias": True,
        "tie": True,
    },
}


class Config(StackConfig):
    preset: Literal["modern", "llama", "gpt2"] = Field("modern", description="named layout; other options override it")
    kv_heads: int = Field(0, ge=0, description="key/value heads; 0: as many as query heads, 1: multi-query attention")
    window: int = Field(0, ge=0, description="sliding attention window, including the current token; 0: no window")
    context: int = Field(128, ge=1, le=2**20, description="context length in tokens")
    positions: Literal["learned", "sinusoidal", "rotary"] = Field("rotary", description="position encoding")
    rotary_base: float = Field(
        10_000.0, gt=1, le=10**12, description="base of the rotary frequencies; larger for longer contexts"
    )
    rotary_scaling: Literal["none", "linear", "llama3", "yarn"] = Field(
        "none", description="change of the rotary frequencies for a longer context than that of the first training"
    )
    rotary_factor: float = Field(1.0, ge=1, description="rotary_scaling: how many times longer the context is")
    rotary_context: int = Field(0, ge=0, le=2**20, description="rotary_scaling: context length of the first training")
    rotary_low: float = Field(1.0, gt=0, description="rotary_scaling: slower frequencies, in turns per context, change")
    rotary_high: float = Field(4.0, gt=0, description="rotary_scaling: faster frequencies, in turns per context, stay")
    rotary_gain: float = Field(1.0, gt=0, description="rotary_scaling: factor of the cosines and sines")
    norm: Literal["layer", "rms"] = Field("rms", description="LayerNorm or RMSNorm")
    eps: float = Field(0.0, ge=0, description="epsilon of the norms; 0: 1e-5 (layer), machine epsilon (rms)")
    pre_norm: bool = Field(True, description="pre-norm (normalise sublayer inputs), else post-norm")
    gated: bool = Field(True, description="gated feed-forward network (SwiGLU), else GELU")
    bend: Literal["gelu", "gelu_exact", "relu"] = Field(
        "gelu", description="activation of the feed-forward network if it is not gated; gelu: its tanh form"
    )
    feed: int = Field(0, ge=0, description="hidden size of the feed-forward; 0: 4 x width, 8/3 x width if gated")
    qk_norm: bool = Field(True, description="normalise queries and keys")
    zero_init: bool = Field(True, description="zero-initialise the output of every residual branch")
    bias: bool = Field(False, description="biases in the linear layers")
    qkv_bias: bool | None = Field(None, description="biases of queries, keys and values; none: as bias")
    head_size: int = Field(0, ge=0, description="size of a head; 0: width / heads")
    output_bias: bool = Field(True, description="bias of the output layer over a vocabulary")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"preset": "gpt2"},
        {"positions": "sinusoidal", "pre_norm": False, "norm": "layer"},
        {"preset": "llama", "kv_heads": 2},
        {"kv_heads": 1},
        {"window": 5},
        {"window": 5, "kv_heads": 2},
        {"window": 1},
        {"preset": "llama", "head_size": 6, "qkv_bias": True, "output_bias": False, "kv_heads": 2},
        {"rotary_scaling": "llama3", "rotary_factor": 4.0, "rotary_context": 64},
        {"gated": False, "bend": "gelu_exact"},
    )
    defaults: ClassVar[Json] = {"task.length": 128, "train.batch": 6}
    presets = PRESETS

    @model_validator(mode="before")
    @classmethod
    def _fit_width_to_heads(cls, values: Json) -> Json:
        """Without an explicit width, use the multiple of 2 x heads nearest to the default."""
        heads, width = values.get("heads"), cls.model_fields["width"].default
        if "width" in values or values.get("head_size") or not isinstance(heads, int) or heads < 1:
            return values
        return values | {"width": 2 * heads * max(1, round(width / (2 * heads)))}

    @model_validator(mode="after")
    def _check_kv_heads(self) -> Config:
        if self.kv_heads and self.heads % self.kv_heads:
            raise ValueError(f"heads={self.heads} must be a multiple of kv_heads={self.kv_heads}")
        if self.head_size % 2 and self.positions == "rotary":
            raise ValueError(f"head_size={self.head_size} must be even, because rotary positions turn pairs")
        if self.rotary_scaling in ("llama3", "yarn") and not self.rotary_context:
            raise ValueError(f"rotary_scaling={self.rotary_scaling} needs rotary_context, the length before scaling")
        if self.rotary_low >= self.rotary_high:
            raise ValueError(f"rotary_low={self.rotary_low} must be less than rotary_high={self.rotary_high}")
        return self

    @property
    def has_own_head_size(self) -> bool:
        return self.head_size > 0

    @property
    def bare_outputs(self) -> bool:
        return not self.output_bias

    @property
    def scaling(self) -> Scaling | None:
        """Of rotary positions."""
        if self.rotary_scaling == "none":
            return None
        factor, context, gain = self.rotary_factor, self.rotary_context, self.rotary_gain
        return Scaling(self.rotary_scaling, factor, context, self.rotary_low, self.rotary_high, gain)

    def build(self) -> Backbone:
        return GPT(self)

    def reading(self, length: int) -> Self:
        return self.model_copy(update={"context": length})


class GPT(Compiled):
    slots = CacheSlots()

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, self.window = config.width, config.window
        self.attended = config.heads * config.head_size or config.width  # size of all queries of a token
        self.limit = config.context
        self.steps: dict[tuple[int, int], list[Step]] = {}
        self.positions: nn.Module | None = None
        self.rotary: Rotary | None = None
        if config.positions == "rotary":
            self.rotary = Rotary(config.head_size or config.width // config.heads, config.rotary_base, config.scaling)
            if config.window:
                self.limit = None  # bounded state, and positions matter only as distances within the window
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.context, config.width)
            self.reach = config.context
        else:
            self.positions = SinusoidalPositions(config.width)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(self._block(config) for _ in range(config.depth))
        self.norm = make_norm(config.norm, config.width, config.eps) if config.pre_norm else nn.Identity()
        self.taps = [module for module in self.modules() if isinstance(module, Tap)]
        self._initialise(config)

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        cache = Cache(state, x, mask, self.window)
        if (kernel := self._kernel(x, cache, mask)) is not None:
            return kernel(x, cache), cache.close()
        places = cache.places(x.device)
        if self.positions is not None:
            x = x + self.positions(places if mask is None else places * mask)  # padding may lie past the last position
        x = self.dropout(x)
        angles = self.rotary.angles(places) if self.rotary else None
        if cache.steps == 1 and not self.needs_modules:
            x = x[:, 0]
            for layer, step in enumerate(self._steps(x.size(0))):
                x = step(x, cache, layer, angles)
            return self.norm(x)[:, None], cache.close()
        views = cache.views(x.device)
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer, views, angles)
        return self.finish(x), cache.close()

    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def layer_taps(self) -> list[Tap]:
        blocks: Any = self.blocks
        return [block.output for block in blocks]

    def finish(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.norm(hidden)
        return found

    def flops(self, length: int) -> float:
        """With the scores of every token and the weighted sums of values, including masked scores within a block."""
        return super().flops(length) + 4.0 * self.attended * pairs(length, self.window) / length * len(self.blocks)

    def forget(self) -> None:
        super().forget()
        self.steps.clear()

    def __getstate__(self) -> Json:
        return {**super().__getstate__(), "steps": {}}

    def _steps(self, rows: int) -> list[Step]:
        """The blocks as functions for one token of `rows` rows; cached."""
        key = rows, torch.get_num_threads()
        if key not in self.steps:
            self.steps = {key: one_token_steps(self.blocks, rows)}
        return self.steps[key]

    def _kernel(self, x: Tensor, cache: Cache, mask: Tensor | None) -> Blocks | None:
        """All blocks as one compiled program, for one token of every row."""
        if cache.steps != 1 or not cache.rows or mask is not None or not x.is_cpu or x.dtype != torch.float32:
            return None
        if self.needs_modules or not cache.has_rooms(torch.float32):
            return None
        found: Blocks | None = self.program(self._compile, cache.rows)
        return found if found is not None and found.reaches(max(cache.reads)) else None

    def _compile(self, threads: int, room: int) -> Blocks:
        return Blocks(self.blocks, self.norm, self.rotary, self.positions, self.window, threads, room)

    @staticmethod
    def _block(c: Config) -> Block:
        hidden = c.feed or (8 * math.ceil(c.width / 3) if c.gated else 4 * c.width)
        norms = make_norm(c.norm, c.width, c.eps), make_norm(c.norm, c.width, c.eps)
        attention = SelfAttention(
            c.width, c.heads, c.dropout, c.bias, c.qk_norm, c.kv_heads, c.eps, size=c.head_size, qkv_bias=c.qkv_bias
        )
        return Block(attention, FeedForward(c.width, hidden, c.gated, c.bias, c.bend), norms, c.pre_norm, c.dropout)

    def _initialise(self, config: Config) -> None:
        """Outputs of residual branches start at zero, or smaller with depth."""
        start_small(self)
        for weight in outputs(self):
            nn.init.normal_(weight, std=0.0 if config.zero_init else 0.02 / math.sqrt(2 * config.depth))
