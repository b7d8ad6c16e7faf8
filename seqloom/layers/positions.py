"""Position encodings. Positions count real tokens only, so padding does not shift them."""

from __future__ import annotations

import math

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


class Rotary(nn.Module):
    """Rotate queries and keys by an angle proportional to position (Su et al. 2021): scores depend on distance only."""

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.speed: Tensor
        self.register_buffer("speed", base ** (-torch.arange(0, width, 2) / width), persistent=False)

    def angles(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin for (T,) or (B, T) positions, broadcastable to (B, H, T, D)."""
        exact = places if places.device.type == "mps" else places.double()  # float32 is too coarse at large positions
        angle = exact[..., None] * self.speed  # (..., T, D / 2)
        cos, sin = angle.cos().to(self.speed.dtype), angle.sin().to(self.speed.dtype)
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        return (cos, sin) if places.dim() == 1 else (cos[:, None], sin[:, None])

    @staticmethod
    def turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        cos, sin = angles
        return torch.addcmul(x * cos, x.roll(x.size(-1) // 2, dims=-1), sin)
