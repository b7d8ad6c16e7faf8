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


class SLSTMSequence(Function):
    """The recurrence of `SLSTMCell` in models/xlstm.py, one recurrent matrix per head; gates in the order i, f, z, o.

    x is (T, N, B, 4 * D) of N heads of size D, the weight (N, D, 4 * D); h, a and mass are (N, B, D).
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, h: Tensor, a: Tensor, mass: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        steps, size = len(x), h.size(-1)
        gates, share = x.clone(), x.new_empty(steps, *h.shape)
        hs, averages, masses = torch.empty_like(share), torch.empty_like(share), torch.empty_like(share)
        start = h, a
        for t in range(steps):
            gates[t].baddbmm_(h, weight)
            i, f, z, o = gates[t].split(size, dim=-1)
            kept = torch.nn.functional.logsigmoid(f).add_(mass)
            w = torch.sub(i, kept, out=share[t]).sigmoid_()
            mass = torch.logaddexp(kept, i, out=masses[t])
            a = torch.lerp(a, z.tanh_(), w, out=averages[t])
            h = torch.mul(o.sigmoid_(), a, out=hs[t])
        ctx.save_for_backward(gates, share, weight, hs, averages, *start)
        return hs, averages, masses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor, grad_a: Tensor, grad_mass: Tensor) -> tuple[Tensor, ...]:
        gates, w, weight, hs, averages, h0, a0 = ctx.saved_tensors
        i, f, z, o = gates.split(h0.size(-1), dim=-1)
        before = torch.cat((a0[None], averages[:-1]))
        # What multiplies the gradients of a, of the mass and of h for the inputs of the gates: i (without its part in
        # the mass), f, z and o.
        factors = [(z - before) * w * (1 - w), torch.sigmoid(-f), w * (1 - z * z), averages * o * (1 - o)]
        keep, back = 1 - w, weight.mT.contiguous()
        dx, dh, da, dm = torch.empty_like(gates), torch.zeros_like(h0), torch.zeros_like(h0), torch.zeros_like(h0)
        for t in range(len(hs) - 1, -1, -1):
            dh.add_(grad_h[t])
            da.add_(grad_a[t]).addcmul_(dh, o[t])
            dm.add_(grad_mass[t])
            d_i, d_f, d_z, d_o = dx[t].split(h0.size(-1), dim=-1)
            torch.mul(da, factors[0][t], out=d_i).addcmul_(dm, w[t])
            dm.sub_(d_i)  # mass and share see i and log f + mass only through their difference, and the mass itself
            torch.mul(dm, factors[1][t], out=d_f)
            torch.mul(da, factors[2][t], out=d_z)
            torch.mul(dh, factors[3][t], out=d_o)
            da.mul_(keep[t])
            torch.bmm(dx[t], back, out=dh)
        previous = torch.cat((h0[None], hs[:-1]))  # h_{t-1}
        dw = previous.transpose(0, 1).flatten(1, 2).mT @ dx.transpose(0, 1).flatten(1, 2)
        return dx, dw, dh, da, dm


def _weight_gradient(dx: Tensor, hs: Tensor, h0: Tensor) -> Tensor:
    """sum_t dx_t^T h_{t-1}, as one product."""
    dw = dx[0].t() @ h0
    return dw.addmm_(dx[1:].flatten(0, 1).t(), hs[:-1].flatten(0, 1)) if len(hs) > 1 else dw
