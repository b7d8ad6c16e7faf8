"""One more token through a Transformer block, without anything that is not arithmetic.

At one token per call the time goes into calling, not computing. This is what `Block.forward` does for a
single new position of every row, written as plain function calls; a test holds the two equal.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.cache import Cache
from seqloom.layers.positions import Rotary


def one_token(block: Any, x: Tensor, cache: Cache, layer: int, angles: tuple[Tensor, Tensor] | None) -> Tensor:
    """(B, width) -> (B, width)"""
    norm_1, norm_2, attention, feed = block.norm_1, block.norm_2, block.attention, block.feed
    if block.pre:
        x = x + _attend(attention, _normalise(norm_1, x), cache, layer, angles)
        return x + _feed(feed, _normalise(norm_2, x))
    x = _normalise(norm_1, x + _attend(attention, x, cache, layer, angles))
    return _normalise(norm_2, x + _feed(feed, x))


def _attend(attention: Any, x: Tensor, cache: Cache, layer: int, angles: tuple[Tensor, Tensor] | None) -> Tensor:
    rows, width = x.shape
    heads, groups, size = attention.heads, attention.kv_heads, attention.size
    q, k, v = _linear(attention.qkv, x).view(rows, -1, 1, size).split((heads, groups, groups), dim=1)
    if attention.norms is not None:
        q, k = _normalise(attention.norms[0], q), _normalise(attention.norms[1], k)
    if angles is not None:
        q, k = Rotary.turn(q, angles), Rotary.turn(k, angles)
    keys, values = cache.extend(layer, k, v)
    if groups < heads:  # heads that share keys stand in the place of positions: nothing is repeated
        q = q.reshape(rows, groups, -1, size)
    mixed = F.scaled_dot_product_attention(q, keys, values)
    return _linear(attention.out, mixed.reshape(rows, width))


def _feed(feed: Any, x: Tensor) -> Tensor:
    x = _linear(feed.up, x)
    if feed.gated:
        gate, x = x.chunk(2, dim=-1)
        return _linear(feed.out, F.silu(gate).mul_(x))
    return _linear(feed.out, F.gelu(x, approximate="tanh"))


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """W x + b. For one row the library keeps to one core; as a batch of blocks of W the product uses them all."""
    weight, bias = layer.weight, layer.bias
    blocks = torch.get_num_threads()
    size, width = weight.shape
    if blocks == 1 or x.size(0) != 1 or size % blocks or not x.is_cpu:
        return F.linear(x, weight, bias)
    row, columns = x.expand(blocks, 1, width), weight.view(blocks, -1, width).mT
    if bias is None:
        return torch.bmm(row, columns).view(1, size)
    return torch.baddbmm(bias.view(blocks, 1, -1), row, columns).view(1, size)


def _normalise(norm: Any, x: Tensor) -> Tensor:
    if type(norm) is nn.LayerNorm:
        return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return norm(x)
