"""The gated delta rule (Yang et al. 2024, 2025): a matrix that is corrected at one key, all steps of a chunk at once.

S_t = a_t (I - b_t k_t^T k_t) S_{t-1} + b_t k_t^T v_t,  y_t = q_t S_t        |k_t| = 1, a_t in (0, 1), b_t in (0, 2)

What a step writes is u_t = b_t (v_t - a_t k_t S_{t-1}), so S_t = a_t S_{t-1} + k_t^T u_t. Within a chunk that starts
from S, with D_ts = a_{s+1} ... a_t for s <= t, else 0, and d_t = a_1 ... a_t:

    U = (I + tril(b K K^T * D, -1))^-1 (b V - b d K S)        one triangular system per chunk
    Y = d Q S + (Q K^T * D) U
    S' = d_C S + (D_C K)^T U = P S + R                        sequential, one product per chunk

B rows, H heads, T tokens in M chunks of C, D values per key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from seqloom.layers.chunks import even_chunk

_EPS = 1e-6


class Inputs(NamedTuple):
    """What a step reads and writes: q, k, v (B, H, T, D); b and log a (B, H, T), both zero where there is padding."""

    q: Tensor
    k: Tensor
    v: Tensor
    write: Tensor
    keep: Tensor


def step(inputs: Inputs, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One token: y and u (B, H, 1, D), and the matrix after it (B, H, D, D)."""
    q, k, v, write, keep = inputs
    kept = past * keep.exp()[..., None]
    u = write[..., None] * (v - k @ kept)
    after = kept + k.mT * u
    return q @ after, u, after


def chunked(inputs: Inputs, past: Tensor, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
    """All tokens: y and u (B, H, T, D), and the matrix after the last one (B, H, D, D)."""
    steps = inputs.q.size(2)
    chunk = even_chunk(steps, chunk)
    q, k, v, write, keep = (_split(x, chunk) for x in inputs)  # (B, H, M, C, D) each; (B, H, M, C)
    within, since = _Decays.apply(keep), keep.cumsum(-1).exp()
    solved = _Inverse.apply((k @ k.mT) * within * write[..., None]) * write[..., None, :]
    values, reads = solved @ v, (solved * since[..., None, :]) @ k  # U = values - reads S
    before, after = _states(k * within[..., -1, :, None], values, reads, since[..., -1], past)
    u = values - reads @ before
    y = since[..., None] * (q @ before) + ((q @ k.mT) * within) @ u
    return y.flatten(2, 3)[:, :, :steps], u.flatten(2, 3)[:, :, :steps], after


def _split(x: Tensor, chunk: int) -> Tensor:
    """(B, H, T, ...) -> (B, H, M, C, ...), with zeros after the last token."""
    if missing := -x.size(2) % chunk:
        x = torch.cat((x, x.new_zeros(*x.shape[:2], missing, *x.shape[3:])), dim=2)
    return x.unflatten(2, (-1, chunk))


def _states(keys: Tensor, values: Tensor, reads: Tensor, decay: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """The matrices before every chunk, (B, H, M, D, D), and after the last."""
    shape = past.shape
    turn = torch.diag_embed(decay[..., None].expand(*decay.shape, shape[-1])) - keys.mT @ reads
    added = keys.mT @ values
    state, before = past.flatten(0, 1), []
    for p, r in zip(turn.flatten(0, 1).unbind(1), added.flatten(0, 1).unbind(1), strict=True):
        before.append(state)
        state = torch.baddbmm(r, p, state)
    return torch.stack(before, dim=1).unflatten(0, shape[:2]), state.view(shape)


def unit(x: Tensor) -> Tensor:
    """x / |x| over the last dimension; a vector of zeros stays one."""
    return _Unit.apply(x)


class _Unit(Function):
    """Fewer passes over x than through autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        scale = torch.linalg.vecdot(x, x)[..., None].add_(_EPS).rsqrt_()
        found = x * scale
        ctx.save_for_backward(found, scale)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        found, scale = ctx.saved_tensors
        along = torch.linalg.vecdot(gradient, found)[..., None]
        return torch.addcmul(gradient, found, along, value=-1).mul_(scale)


class _Decays(Function):
    """Logarithms of a (..., C) -> products of a between any two steps, a_{s+1} ... a_t at (t, s); 0 above the diagonal.

    Every sum of logarithms has terms of one sign only: a difference of two long sums would lose weak decays that
    follow a strong one.
    """

    @staticmethod
    def forward(ctx: Any, keep: Tensor) -> Tensor:
        sums = keep[..., None, :].expand(*keep.shape, keep.size(-1)).triu(1).cumsum(-1)  # (s, t)
        decays = sums.exp_().triu_().mT.contiguous()
        ctx.save_for_backward(decays)
        return decays

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (decays,) = ctx.saved_tensors
        share = gradient * decays
        return (share.sum(-1) - share.sum(-2)).flip(-1).cumsum(-1).flip(-1)


class _Inverse(Function):
    """(I + tril(x, -1))^-1; backward takes two products where that of a triangular solve solves again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        unit = torch.eye(x.size(-1), dtype=x.dtype, device=x.device).expand_as(x)
        found = torch.linalg.solve_triangular(x, unit, upper=False, unitriangular=True)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (found,) = ctx.saved_tensors
        return -(found.mT @ gradient @ found.mT).tril_(-1)
