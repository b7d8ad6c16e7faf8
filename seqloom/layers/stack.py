"""Stacks of multi-head blocks: shared options, presets and weight initialisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field, model_validator
from torch import nn

from seqloom.core.choice import Choice, Demand
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json

_WIDTH, _RATE = 128, 4e-3  # for pairs; a wider stack diverges at this rate


class StackConfig(ModelConfig):
    depth: int = Field(4, ge=1, le=128, description="number of blocks")
    heads: int = Field(4, ge=1, description="attention heads, each of size width / heads")
    feed: int = Field(0, ge=0, description="hidden size of the feed-forward network; 0: 4 x width")

    knobs: ClassVar[tuple[str, ...]] = ("width", "feed")
    tables: ClassVar[float | None] = 0.02
    presets: ClassVar[Mapping[str, Json]] = {}  # named layouts, the first is the default
    per_head: ClassVar[int] = 2  # head size must be a multiple of this: rotary and sinusoidal positions need pairs

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Json) -> Json:
        """Explicit options override the preset."""
        name = values.get("preset", next(iter(cls.presets), ""))
        return {**cls.presets.get(str(name), {}), **values}

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        share = self.per_head * self.heads
        if self.width % share and not self.has_own_head_size:
            factor = f"heads={self.heads}" if self.per_head == 1 else f"{self.per_head} x heads ({share})"
            raise ValueError(f"width={self.width} must be a multiple of {factor}")
        return self

    @property
    def has_own_head_size(self) -> bool:
        """Whether the heads have a size of their own, not width / heads."""
        return False

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        """Small: with some ten thousand rows, many cheap updates teach more than a large model."""
        settings: Json = {}
        if demand.whole:
            settings = {"model.width": 128, "model.depth": 2, "model.dropout": 0.3}
            settings |= {"train.optimizer": "adamw", "train.rate": 1e-3}
        if demand.pairs:
            width = demand.width or _WIDTH
            rate = _RATE * min(1.0, _WIDTH / width)
            settings = {"model.width": width, "model.depth": 2, "model.feed": 2 * width, "model.dropout": 0.1}
            settings |= {"model.tie": True, "train.optimizer": "adamw", "train.rate": rate, "train.warmup": 500}
        return [Choice(path, value, demand.size) for path, value in settings.items()]


def start_small(stack: nn.Module) -> None:
    """Initialise linear layers: weights from N(0, 0.02^2) (Radford et al. 2018), biases zero."""
    for module in stack.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def outputs(stack: nn.Module) -> list[nn.Parameter]:
    """The weights of the last layer of every residual branch, which is named `out`."""
    return [weight for name, weight in stack.named_parameters() if name.endswith("out.weight")]
