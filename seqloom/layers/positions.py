"""Position encodings. Positions count real tokens only, so padding does not shift them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqloom.core.errors import UserError


class LearnedPositions(nn.Module):
    """A learned embedding per position, up to a fixed context length."""

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(context, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, places: Tensor) -> Tensor:
        last = int(places.max()) if places.numel() else 0
        if last >= self.table.num_embeddings:
            raise UserError(
                f"the sequence is {last + 1} tokens long, the model's learned positions end at "
                f"{self.table.num_embeddings}; shorten it, or train with a larger model.context or "
                "other model.positions"
            )
        return self.table(places)


class SinusoidalPositions(nn.Module):
    """Fixed sines and cosines of geometrically spaced wavelengths (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, places: Tensor) -> Tensor:
        half = torch.arange(0, self.width, 2, device=places.device)
        angle = places[..., None] * torch.exp(half * (-math.log(10_000.0) / self.width))  # (..., T, width / 2)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., : self.width]


class Scaling(NamedTuple):
    """How rotary frequencies are changed, so that a model reads longer contexts than it was first trained on."""

    kind: str
    factor: float  # the context grows by this factor
    context: int  # before scaling
    low: float  # turns per context below which a frequency is divided by the factor
    high: float  # turns per context above which it stays
    gain: float = 1.0  # of cosines and sines


def _linear(speed: Tensor, base: float, s: Scaling) -> Tensor:
    """All frequencies divided (Chen et al. 2023)."""
    return speed / s.factor


def _llama3(speed: Tensor, base: float, s: Scaling) -> Tensor:
    """Low frequencies divided, high ones kept, with a linear transition in turns per context (Llama 3.1)."""
    kept = ((s.context * speed / (2 * math.pi) - s.low) / (s.high - s.low)).clamp(0, 1)
    return (1 - kept) * speed / s.factor + kept * speed


def _yarn(speed: Tensor, base: float, s: Scaling) -> Tensor:
    """The same with a transition that is linear in the dimension (YaRN, Peng et al. 2023, section 3.2)."""
    width = 2 * len(speed)
    turns = [s.context / (turns * 2 * math.pi) for turns in (s.high, s.low)]
    first, last = (width * math.log(ratio) / (2 * math.log(base)) for ratio in turns)
    first, last = max(math.floor(first), 0), min(math.ceil(last), width - 1)
    divided = ((torch.arange(len(speed)) - first) / max(last - first, 0.001)).clamp(0, 1)
    return divided * speed / s.factor + (1 - divided) * speed


SCALINGS: dict[str, Callable[[Tensor, float, Scaling], Tensor]] = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}


class Rotary(nn.Module):
    """Rotate queries and keys by an angle proportional to position (Su et al. 2021): scores depend on distance only."""

    def __init__(self, width: int, base: float = 10_000.0, scaling: Scaling | None = None) -> None:
        super().__init__()
        self.speed: Tensor
        speed = base ** (-torch.arange(0, width, 2) / width)
        if scaling is not None:
            speed = SCALINGS[scaling.kind](speed, base, scaling)
        self.gain = scaling.gain if scaling is not None else 1.0
        self.register_buffer("speed", speed, persistent=False)

    def angles(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin for (T,) or (B, T) positions, broadcastable to (B, H, T, D)."""
        exact = places if places.device.type == "mps" else places.double()  # float32 is too coarse at large positions
        angle = exact[..., None] * self.speed  # (..., T, D / 2)
        cos, sin = angle.cos().to(self.speed.dtype), angle.sin().to(self.speed.dtype)
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        if self.gain != 1:
            cos, sin = cos * self.gain, sin * self.gain
        return (cos, sin) if places.dim() == 1 else (cos[:, None], sin[:, None])

    @staticmethod
    def turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        cos, sin = angles
        return torch.addcmul(x * cos, x.roll(x.size(-1) // 2, dims=-1), sin)
