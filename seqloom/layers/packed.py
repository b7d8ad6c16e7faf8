"""Packed weights: a second copy of large matrices, in the layout in which oneDNN multiplies some rows by them.

For models that are served: rows that are decoded together, and prompts, take about half the time on a CPU with AVX-512.
A packed model must not be trained or loaded into again: the copies would not follow.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.linear import Linear, Map

_ROWS = 32  # for which the layout is made; it serves any number
_LARGE = 16_000  # weights


def pack(model: nn.Module) -> int:
    """Pack what can be packed; returns the bytes that it takes."""
    total = 0
    for part in model.modules():
        if isinstance(part, Linear) and part.weight.numel() >= _LARGE and part.weight.dtype == torch.float32:
            weight = part.weight
            if weight.is_cpu and (multiply := _packed(weight.detach())) is not None:
                weight.packed = multiply  # type: ignore[attr-defined]
                total += weight.nbytes
    return total


def _packed(weight: Tensor) -> Map | None:
    """None: this build of torch has no such product."""
    try:
        with torch.no_grad():
            layout = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _ROWS)
            product = torch.ops.mkldnn._linear_pointwise
            probe = torch.eye(4, weight.size(1))
            if not torch.allclose(product(probe, layout, None, "none", [], ""), F.linear(probe, weight), atol=1e-4):
                return None
    except (AttributeError, RuntimeError):
        return None

    def multiply(x: Tensor, bias: Tensor | None = None) -> Tensor:
        found: Tensor = product(x, layout, bias, "none", [], "")
        return found

    return multiply
