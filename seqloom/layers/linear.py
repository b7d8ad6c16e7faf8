"""Linear: y = W x + b, fast for a single row too.

Generating one token is a matrix-vector product per layer. torch's general matrix product runs that on one core, with
overhead meant for more rows; here a small matrix goes to the matrix-vector routine, and a large one is split into one
block per thread.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Map = Callable[[Tensor], Tensor]

_SMALL = 100_000  # weights below which a second thread does not pay off


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)

    def map_of(self, rows: int) -> Map:
        """The layer as a plain function (rows, in) -> (rows, out) for a fixed number of rows, without gradients."""
        weight, bias = self.weight, self.bias
        if rows == 1 and weight.is_cpu:
            return _map_of_one_row(weight, bias)
        return lambda x: F.linear(x, weight, bias)


def by_columns(model: nn.Module) -> None:
    """Store large matrices by columns, in place: the same weights, but a single row is multiplied twice as fast (on an
    EPYC 21 instead of 11 GB/s; some rows together are a little slower, many are not)."""
    for part in model.modules():
        if isinstance(part, Linear) and part.weight.is_cpu and part.weight.numel() >= _SMALL:
            part.weight.data = part.weight.data.t().contiguous().t()


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(..., in) -> (..., out)"""
    if torch.is_grad_enabled() or x.numel() != x.size(-1) or not x.is_cpu or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    return _map_of_one_row(weight, bias)(x.reshape(1, -1)).view(*x.shape[:-1], -1)


def _map_of_one_row(weight: Tensor, bias: Tensor | None) -> Map:
    threads, (size, width) = torch.get_num_threads(), weight.shape
    if threads == 1 or size % threads or weight.numel() < _SMALL:
        if bias is None:
            return lambda x: torch.mv(weight, x.view(width)).view(1, size)
        return lambda x: torch.addmv(bias, weight, x.view(width)).view(1, size)
    blocks, shape = weight.view(threads, -1, width).mT, (threads, 1, width)
    if bias is None:
        return lambda x: torch.bmm(x.expand(shape), blocks).view(1, size)
    cut = bias.view(threads, 1, -1)
    return lambda x: torch.baddbmm(cut, x.expand(shape), blocks).view(1, size)
