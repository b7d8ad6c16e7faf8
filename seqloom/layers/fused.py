"""Whole recurrent sequences with a hand-written backward: the same results as the cell loop, faster.

The loop in `recurrent.py` is the reference. Here the same recurrences run time-first on preallocated
buffers with explicit back-propagation through time: every factor that does not depend on the
incoming gradient is computed for all steps at once, and the recurrent weights get their gradient from
one large product at the end instead of one small product per step.

T steps, B rows, H hidden units; `x` is the projected input, time-first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class RNNSequence(Function):
    """h_t = act(x_t + W h_{t-1})"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, h0: Tensor, relu: bool) -> Tensor:
        activate = torch.relu_ if relu else torch.tanh_
        hs, h = x.clone(), h0
        for h_t in hs:
            h = activate(h_t.addmm_(h, weight.t()))
        ctx.save_for_backward(hs, weight, h0)
        ctx.relu = relu
        return hs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hs: Tensor) -> tuple[Tensor | None, ...]:
        hs, weight, h0 = ctx.saved_tensors
        slope = (hs > 0).to(hs.dtype) if ctx.relu else 1 - hs * hs
        dx, dh = torch.empty_like(hs), torch.zeros_like(h0)
        for t in range(len(hs) - 1, -1, -1):
            d = torch.mul(dh.add_(grad_hs[t]), slope[t], out=dx[t])
            torch.mm(d, weight, out=dh)
        return dx, _weight_gradient(dx, hs, h0), dh, None


class GRUSequence(Function):
    """n = tanh(x_n + r * (W_n h + b));  h_t = (1 - z) * n + z * h_{t-1}; gates in the order r, z, n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, h0: Tensor) -> Tensor:
        steps, rows, hidden = x.size(0), x.size(1), h0.size(1)
        gates, hs, recalled = x.clone(), x.new_empty(steps, rows, hidden), x.new_empty(steps, rows, hidden)
        (to_gates, to_new), h = weight.t().split((2 * hidden, hidden), dim=1), h0
        for t in range(steps):
            gates[t, :, : 2 * hidden].addmm_(h, to_gates).sigmoid_()
            r, z, n = gates[t].view(rows, 3, hidden).unbind(1)
            n.addcmul_(r, torch.addmm(bias, h, to_new, out=recalled[t])).tanh_()
            h = torch.lerp(n, h, z, out=hs[t])
        ctx.save_for_backward(gates, recalled, weight, hs, h0)
        return hs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hs: Tensor) -> tuple[Tensor, ...]:
        gates, recalled, weight, hs, h0 = ctx.saved_tensors
        (steps, rows, hidden), dh = hs.shape, torch.zeros_like(h0)
        r, z, n = gates.view(steps, rows, 3, hidden).unbind(2)
        before = torch.cat((h0[None], hs[:-1]))  # h_{t-1}
        new = (1 - z) * (1 - n * n)  # dh_t -> d(x_n)
        d = torch.stack((new * recalled * r * (1 - r), (before - n) * z * (1 - z), new * r, new), dim=2)
        for t in range(steps - 1, -1, -1):
            dh.add_(grad_hs[t])
            d[t].mul_(dh[:, None])
            dh.mul_(z[t]).addmm_(d[t, :, :3].reshape(rows, -1), weight)
        dx = d[:, :, (0, 1, 3)].view(steps, rows, -1)
        dw = _weight_gradient(d[:, :, :3].reshape(steps, rows, -1), hs, h0)
        return dx, dw, d[:, :, 2].sum((0, 1)), dh


def _weight_gradient(dx: Tensor, hs: Tensor, h0: Tensor) -> Tensor:
    """sum_t dx_t^T h_{t-1}, as one product."""
    dw = dx[0].t() @ h0
    return dw.addmm_(dx[1:].flatten(0, 1).t(), hs[:-1].flatten(0, 1)) if len(hs) > 1 else dw
