"""Compiled mathematics: exponentials that the vector unit can compute, and products with rows of a matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from seqloom.layers.kernels.jit import exactly, kernel

_LOG2E, _LN2_HIGH, _LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
_MOST = np.float32(88.0)
_C2, _C3, _C4 = np.float32(0.5), np.float32(1.6666665e-1), np.float32(4.1665795e-2)
_C5, _C6, _C7 = np.float32(8.3334519e-3), np.float32(1.3981999e-3), np.float32(1.9875691e-4)
_ONE, _HALF, _TWO = np.float32(1), np.float32(0.5), np.float32(2)
_GELU, _CUBE = np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
_BIAS, _MANTISSA = np.int32(127), np.int32(23)


@exactly
def split(x: Any) -> Any:
    """(p, power of 2) of which e^x is (1 + p) * power in float32, within two units in the last place (Cephes); without
    a branch, so that it can be vectorised."""
    x = min(max(x, -_MOST), _MOST) if x == x else x
    whole = np.floor(x * _LOG2E + _HALF)
    r = x - whole * _LN2_HIGH - whole * _LN2_LOW
    tail = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
    return tail * r * r + r, np.int32((np.int32(whole) + _BIAS) << _MANTISSA).view(np.float32)


@exactly
def exp(x: Any) -> Any:
    p, power = split(x)
    return (p + _ONE) * power


@exactly
def sigmoid(x: Any) -> Any:
    return _ONE / (_ONE + exp(-x))


@exactly
def tanh(x: Any) -> Any:
    """By e^2x - 1, which is exact to float32's last places near zero too."""
    p, power = split(_TWO * x)
    less = p * power + (power - _ONE)
    return less / (less + _TWO)


@exactly
def gelu(x: Any) -> Any:
    return x * sigmoid(_TWO * _GELU * (x + _CUBE * x * x * x))


@exactly
def gelu_exact(x: Any) -> Any:
    return np.float32(0.5 * x * (1.0 + math.erf(x * 0.7071067811865476)))


@kernel
def dot(weight: Any, begin: Any, x: Any, width: Any) -> Any:
    row, total = weight[begin : begin + width], np.float32(0)  # slices: indices that may be negative are not vectorised
    for i in range(width):
        total += np.float32(row[i]) * x[i]
    return total


@kernel
def dots(weight: Any, a: Any, b: Any, c: Any, d: Any, x: Any, width: Any) -> Any:
    """The products of x with four rows of a matrix, which begin at these places."""
    row_a, row_b, row_c, row_d = (
        weight[a : a + width],
        weight[b : b + width],
        weight[c : c + width],
        weight[d : d + width],
    )
    first = second = third = fourth = np.float32(0)
    for i in range(width):
        value = x[i]
        first += np.float32(row_a[i]) * value
        second += np.float32(row_b[i]) * value
        third += np.float32(row_c[i]) * value
        fourth += np.float32(row_d[i]) * value
    return first, second, third, fourth
