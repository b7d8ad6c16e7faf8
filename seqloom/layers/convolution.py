"""A short causal depthwise convolution: y_t = sum_k w_k * x_{t-K+k}, the newest input last."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def convolve(read: Tensor, weight: Tensor) -> Tensor:
    """(B, K-1+T, H) and weights (K, 1, H) -> (B, T, H)."""
    if read.size(1) == len(weight):
        return (read * weight[:, 0]).sum(1, keepdim=True)
    return _Convolution.apply(read, weight)


class _Convolution(Function):
    """K shifted multiply-adds, at a third of the cost of the same through autograd or of torch's convolution."""

    @staticmethod
    def forward(ctx: Any, read: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(read, weight)
        (first, *others), steps = weight, read.size(1) - len(weight) + 1
        y = read[:, :steps] * first
        for k, w in enumerate(others, start=1):
            y.addcmul_(read[:, k : k + steps], w)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        read, weight = ctx.saved_tensors
        steps, d_read, d_weight = gradient.size(1), torch.zeros_like(read), torch.empty_like(weight)
        for k, w in enumerate(weight):
            d_read[:, k : k + steps].addcmul_(gradient, w)
            torch.sum(read[:, k : k + steps] * gradient, dim=(0, 1), out=d_weight[k, 0])
        return d_read, d_weight
