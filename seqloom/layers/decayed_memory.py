"""A matrix memory with a scalar decay per head and step, in chunks (Dao & Gu 2024, section 6).

S_t = a_t S_{t-1} + k_t^T v_t,  y_t = q_t S_t = sum_{s<=t} a_{s+1} ... a_t (q_t . k_s) v_s

Within a chunk, every pair of tokens meets in one product of (K, K) matrices; between chunks only S is passed on.
Decays are given as logarithms, log a <= 0. They are summed within a chunk, and only differences that are at most zero
are exponentiated: nothing overflows, and what underflows has been forgotten.

G groups of R heads; the heads of a group share queries and keys of size N, and their values of size P lie side by side.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from seqloom.core.taps import Tap
from seqloom.layers.chunks import even_chunk
from seqloom.layers.scan import scan

_LEAST = 1e-30  # of a decay that was put in from outside: its logarithm must be a number


def remember(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, past: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """All y and the last S; q and k are (B, G, T, N), v is (B, G, T, R * P), decay (B, G, T, R), S (B, G, N, R * P).

    A token with a zero key and a log decay of zero leaves S as it was.
    """
    steps, heads = decay.size(2), decay.size(3)
    if steps == 1:
        past = _scaled(past, decay.exp()) + k.mT * v
        return q @ past, past
    chunk = even_chunk(steps, chunk)
    if rest := -steps % chunk:  # padding by nothing would copy
        q, k, v, decay = (F.pad(x, (0, 0, 0, rest)) for x in (q, k, v, decay))
    q, k, v, decay = (x.unflatten(2, (-1, chunk)) for x in (q, k, v, decay))
    since = decay.cumsum(3)  # (B, G, M, K, R): log decay since the chunk began
    added = k.mT @ _scaled(v, (since[:, :, :, -1:] - since).exp())  # (B, G, M, N, R * P)
    after = _over_chunks(since[:, :, :, -1:].exp(), added, past)
    before = torch.cat((past[:, :, None], after[:, :, :-1]), dim=2)
    weights = _Decayed.apply((q @ k.mT)[:, :, :, None], since.mT)  # (B, G, M, R, K, K)
    near = weights @ v.unflatten(-1, (heads, -1)).transpose(3, 4)  # (B, G, M, R, K, P)
    y = _scaled(q @ before, since.exp()) + near.transpose(3, 4).flatten(4)
    return y.flatten(2, 3)[:, :, :steps], after[:, :, -1].clone()  # a view would keep the whole tensor alive


def remember_flops(length: int, chunk: int, groups: int, heads: int, keys: int, values: int) -> float:
    """Per token: scores and weighted sums within a chunk, including the masked half; reading and updating the matrix.

    `heads`: per group; `keys` and `values`: their sizes per head.
    """
    chunk = even_chunk(length, chunk)
    each = 2 * chunk * (keys + heads * values) + 4 * keys * heads * values
    return groups * each * chunk * -(-length // chunk) / length


def decay_tapped(tap: Tap, decay: Tensor) -> Tensor:
    """Log decay, whose factor a passes a tap; the logarithm is taken anew only of what was put in its place."""
    if not tap.watched:
        return decay
    kept = tap(decay.exp())
    return kept.clamp_min(_LEAST).log() if tap.edited else decay


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    """(..., R * P) times one factor (..., R) per head."""
    return (x.unflatten(-1, (factor.size(-1), -1)) * factor[..., None]).flatten(-2)


def _over_chunks(keep: Tensor, added: Tensor, past: Tensor) -> Tensor:
    """S after each chunk: (B, G, M, N, R * P)."""
    heads = added.unflatten(-1, (keep.size(-1), -1))
    factors = keep[..., None].expand_as(heads)
    after = scan(factors.flatten(3).flatten(0, 1), heads.flatten(3).flatten(0, 1), past.flatten(2).flatten(0, 1))
    return after.view_as(added)


class _Decayed(Function):
    """Scores (..., 1, K, K) times what is left of token s at token t, exp(since_t - since_s), with since (..., R, K);
    later tokens have no weight. Fewer passes over (..., R, K, K) than the same through autograd."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, since: Tensor) -> Tensor:
        later = since.new_full((since.size(-1), since.size(-1)), -torch.inf).triu(1)
        left = (since[..., :, None] - since[..., None, :]).add_(later).exp_()
        ctx.save_for_backward(scores, left)
        return scores * left

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        scores, left = ctx.saved_tensors
        d = gradient * left
        d_scores = d.sum(-3, keepdim=True)
        d.mul_(scores)
        return d_scores, d.sum(-1).sub_(d.sum(-2))
