"""Normalisation layers with a learned gain per feature."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class RMSNorm(nn.RMSNorm):
    """x / sqrt(mean(x^2)) * gain (Zhang & Sennrich 2019); the gain is cast to the dtype of x, for the fused kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


NORMS = {"layer": nn.LayerNorm, "rms": RMSNorm}


def make_norm(kind: str, width: int, eps: float = 0.0) -> nn.Module:
    """`eps` is added to the variance; 0: the default of the norm."""
    return NORMS[kind](width, **({"eps": eps} if eps else {}))
