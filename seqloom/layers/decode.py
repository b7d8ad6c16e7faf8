"""Single-token decoding through Transformer blocks with minimal overhead.

At one token per call, call overhead dominates. Here every block becomes a plain function that closes over its weights,
with the kernel for each matrix chosen once; a test checks that it equals `Block.forward`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.cache import Cache
from seqloom.layers.linear import Map, map_of
from seqloom.layers.positions import Rotary

Angles = tuple[Tensor, Tensor] | None
Step = Callable[[Tensor, Cache, int, Angles], Tensor]


def one_token_steps(blocks: Iterable[Any], rows: int) -> list[Step]:
    """One function per block, (B, width) -> (B, width), for batches of `rows` rows."""
    return [_block(block, rows) for block in blocks]


def _block(block: Any, rows: int) -> Step:
    norm_1, norm_2 = _norm(block.norm_1), _norm(block.norm_2)
    attend, feed = _attention(block.attention, rows), _feed(block.feed, rows)

    def pre(x: Tensor, cache: Cache, layer: int, angles: Angles) -> Tensor:
        x = x + attend(norm_1(x), cache, layer, angles)
        return x + feed(norm_2(x))

    def post(x: Tensor, cache: Cache, layer: int, angles: Angles) -> Tensor:
        x = norm_1(x + attend(x, cache, layer, angles))
        return norm_2(x + feed(x))

    return pre if block.pre else post


def _attention(attention: Any, rows: int) -> Step:
    heads, groups, size = attention.heads, attention.kv_heads, attention.size
    parts, width = (heads, groups, groups), heads * size
    qkv, out = map_of(attention.qkv, rows), map_of(attention.out, rows)
    norms = None if attention.norms is None else [_norm(norm) for norm in attention.norms]

    def attend(x: Tensor, cache: Cache, layer: int, angles: Angles) -> Tensor:
        q, k, v = qkv(x).view(rows, -1, 1, size).split_with_sizes(parts, 1)
        if norms is not None:
            q, k = norms[0](q), norms[1](k)
        if angles is not None:
            q, k = Rotary.turn(q, angles), Rotary.turn(k, angles)
        keys, values = cache.extend(layer, k, v)
        if groups < heads:  # heads that share keys go along the query dimension: no repeated keys
            q = q.reshape(rows, groups, -1, size)
        mixed = F.scaled_dot_product_attention(q, keys, values, cache.hidden(q))
        return out(mixed.reshape(rows, width))

    return attend


def _feed(feed: Any, rows: int) -> Map:
    up, out = map_of(feed.up, rows), map_of(feed.out, rows)

    def gated(x: Tensor) -> Tensor:
        gate, x = up(x).chunk(2, dim=-1)
        return out(F.silu(gate).mul_(x))

    bend = feed.bend
    return gated if feed.gated else lambda x: out(bend(up(x)))


def _norm(norm: Any) -> Map:
    if type(norm) is nn.LayerNorm:
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return norm.forward
