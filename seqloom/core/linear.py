"""Linear: y = W x + b, quick for a single row too.

Generating one token multiplies every matrix with one vector. The library's general product keeps that to one core and
prepares for more rows than there are; here a small matrix goes to the vector routine, and a large one is cut into
as many blocks as there are threads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SMALL = 100_000  # weights that one core has multiplied before another could begin


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or x.numel() != self.in_features or not x.is_cpu:
            return F.linear(x, self.weight, self.bias)
        return self.map_of(1)(x.view(1, -1)).view(*x.shape[:-1], -1)

    def map_of(self, rows: int) -> Callable[[Tensor], Tensor]:
        """What it does to inputs of so many rows, (rows, in) -> (rows, out), as a plain function without gradients."""
        weight, bias, threads = self.weight, self.bias, torch.get_num_threads()
        size, width = weight.shape
        if rows != 1 or not weight.is_cpu:
            return lambda x: F.linear(x, weight, bias)
        if threads == 1 or size % threads or weight.numel() < _SMALL:
            if bias is None:
                return lambda x: torch.mv(weight, x.view(width)).view(1, size)
            return lambda x: torch.addmv(bias, weight, x.view(width)).view(1, size)
        blocks, shape = weight.view(threads, -1, width).mT, (threads, 1, width)
        if bias is None:
            return lambda x: torch.bmm(x.expand(shape), blocks).view(1, size)
        cut = bias.view(threads, 1, -1)
        return lambda x: torch.baddbmm(cut, x.expand(shape), blocks).view(1, size)
