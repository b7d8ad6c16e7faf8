"""Dropout (Srivastava et al. 2014), fast on a CPU.

On a CPU nearly all of the time goes into random numbers, and torch draws 64 bits per value. Sixteen bits are enough:
the dropout probability is met to within 1/65,536.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_HALF = 1 << 15  # signed 16-bit integers lie between -_HALF and _HALF - 1


class Dropout(nn.Dropout):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if not x.is_cpu:
            return F.dropout(x, self.p)
        dropped = min(round(self.p * 2 * _HALF), 2 * _HALF - 1)  # always keep some
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
        kept = bits[: x.numel()].view(x.shape) >= dropped - _HALF
        return x * kept.to(x.dtype).mul_(2 * _HALF / (2 * _HALF - dropped))
