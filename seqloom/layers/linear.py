"""Linear: y = W x + b, fast for a single row too.

Generating one token is a matrix-vector product per layer. torch's general matrix product runs that on one core, with
overhead meant for more rows; here a small matrix goes to the matrix-vector routine, and a large one is split into one
block per thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.kernels.engine import runner
from seqloom.layers.kernels.program import Matrix, Row

Map = Callable[[Tensor], Tensor]

_SMALL = 100_000  # weights below which a second thread does not pay off
_SOME = 4  # rows from which packed weights are quicker


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        if is_one_row(x) and (row := one_row(self)) is not None:
            return row(x).view(*x.shape[:-1], -1)
        return affine(x, self.weight, self.bias)

    def map_of(self, rows: int) -> Map:
        """The layer as a plain function (rows, in) -> (rows, out) for a fixed number of rows, without gradients."""
        if rows == 1 and (row := one_row(self)) is not None:
            return row
        return _map_of(self.weight, self.bias, rows)


class TiedLinear(Linear):
    """A linear layer whose weight and bias are parameters of another module, and have their names there.

    It owns nothing, so checkpoints and counts do not see it; adapters can wrap it as any other layer.
    """

    owner: Any

    def __init__(self, owner: nn.Module, weight: str, bias: str | None = None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = getattr(owner, weight).shape
        self.names = weight, bias
        self.__dict__["owner"] = owner  # not as a submodule: the owner contains this layer

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        return self.owner._parameters[self.names[0]]  # several times as fast as `getattr`

    @property
    def bias(self) -> Tensor | None:  # type: ignore[override]
        return self.owner._parameters[self.names[1]] if self.names[1] else None


def weight_of(layer: Any) -> Tensor:
    """What a layer multiplies by: its weight, in int8 times its scales; if adapters wrap it (layers/lora.py), with what
    they add."""
    if hasattr(layer, "whole"):
        found: Tensor = layer.whole()
        return found
    weight: Tensor = layer.weight
    if isinstance(layer, nn.Linear) or layer.merged or layer.disable_adapters:
        return weight
    for name in layer.active_adapters:
        weight = weight + layer.get_delta_weight(name).to(weight.dtype)
    return weight


def matrix_of(layer: Any) -> Matrix:
    """What kernels need of a linear layer, with what adapters add to it."""
    if hasattr(layer, "as_matrix"):
        found: Matrix = layer.as_matrix()
        return found
    weight = weight_of(layer)
    return Matrix(weight, None, layer.bias, weight.size(1))


_rows: WeakKeyDictionary[nn.Module, tuple[tuple[int, ...], Row]] = WeakKeyDictionary()


def one_row(layer: Any) -> Row | None:
    """The compiled product of a large matrix with one row; None: torch's is used."""
    matrix = matrix_of(layer)
    weight, bias = matrix.weight, matrix.bias
    dtype = torch.float32 if matrix.scales is None else torch.int8
    if weight.numel() < _SMALL or not weight.is_cpu or weight.dtype != dtype or not weight.is_contiguous():
        return None
    if runner() is None:
        return None
    key = weight.data_ptr(), 0 if bias is None else bias.data_ptr(), torch.get_num_threads()
    known = _rows.get(layer)
    if known is None or known[0] != key:
        known = _rows[layer] = key, Row(matrix, key[2])
    return known[1]


def is_one_row(x: Tensor) -> bool:
    """Whether this is a single vector in float32 on a CPU, without gradients."""
    if torch.is_grad_enabled() or x.numel() != x.size(-1) or not x.is_cpu or x.dtype != torch.float32:
        return False
    return not torch.is_autocast_enabled("cpu")


def map_of(layer: Any, rows: int) -> Map:
    """See `Linear.map_of`; adapters that wrap a layer are added to its weight once."""
    if hasattr(layer, "map_of"):
        found: Map = layer.map_of(rows)
        return found
    return _map_of(weight_of(layer), layer.bias, rows)


def by_columns(model: nn.Module) -> None:
    """Store large matrices by columns, in place: the same weights, but a single row is multiplied twice as fast (on an
    EPYC 21 instead of 11 GB/s; some rows together are a little slower, many are not)."""
    for part in model.modules():
        if isinstance(part, Linear) and part.weight.is_cpu and part.weight.numel() >= _SMALL:
            part.weight.data = part.weight.data.t().contiguous().t()


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(..., in) -> (..., out)"""
    if torch.is_grad_enabled() or x.numel() != x.size(-1) or not x.is_cpu or torch.is_autocast_enabled("cpu"):
        return _of_rows(x, weight, bias)
    return _map_of_one_row(weight, bias)(x.reshape(1, -1)).view(*x.shape[:-1], -1)


def _map_of(weight: Tensor, bias: Tensor | None, rows: int) -> Map:
    if rows == 1 and weight.is_cpu:
        return _map_of_one_row(weight, bias)
    return lambda x: _of_rows(x, weight, bias)


def is_packed(layer: Any, rows: int) -> bool:
    """Whether this number of rows is multiplied by a packed copy of its weight."""
    return rows >= _SOME and not torch.is_grad_enabled() and getattr(layer.weight, "packed", None) is not None


def _of_rows(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """With the packed copy of the weight, if there is one (layers/packed.py)."""
    packed = getattr(weight, "packed", None)
    if packed is None or torch.is_grad_enabled() or x.numel() < _SOME * x.size(-1) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    found: Tensor = packed(x, bias)
    return found


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
