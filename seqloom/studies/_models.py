"""Models for studies that look at gradients or outputs directly, by name, without a task."""

from __future__ import annotations

from typing import Any

import torch

from seqloom.core.backbone import Backbone
from seqloom.runs.registry import section


def backbone(name: str, seed: int = 0, **options: Any) -> Backbone:
    """An architecture of models/ with its options and random weights, (B, T, inputs) -> (B, T, width), without "
    "dropout."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found: Backbone = section("models", {"name": name, **options}).build()
    return found.eval()


def parameters(model: torch.nn.Module) -> int:
    return sum(weights.numel() for weights in model.parameters())
