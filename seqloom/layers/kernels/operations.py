"""Compiled operations of one token, each on the part of its work that a thread has taken.

`f` is the operation's row of the table (fields.py), `numbers` its real numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from seqloom.layers.kernels import fields as at
from seqloom.layers.kernels import jit
from seqloom.layers.kernels.jit import kernel
from seqloom.layers.kernels.maths import dot, dots, exp, gelu, gelu_exact, sigmoid, tanh

_pointer, _carray, _prefetch = jit.pointer(), jit.carray(), jit.prefetch()
_ONE, _ZERO = np.float32(1), np.float32(0)


@kernel
def reals(address: Any, size: Any) -> Any:
    return _carray(_pointer(address), (size,), np.float32)


@kernel
def wholes(address: Any, size: Any) -> Any:
    return _carray(_pointer(address), (size,), np.int8)


@kernel
def copy(f: Any, numbers: Any) -> None:
    x, y, factor = reals(f[at.X], f[at.WIDTH]), reals(f[at.Y], f[at.WIDTH]), np.float32(numbers[at.FACTOR])
    for i in range(f[at.WIDTH]):
        y[i] = x[i] * factor


@kernel
def place(f: Any) -> None:
    row, y = reals(f[at.ROW], f[at.WIDTH]), reals(f[at.Y], f[at.WIDTH])
    for i in range(f[at.WIDTH]):
        y[i] += row[i]


@kernel
def normalise(x: Any, y: Any, gain: Any, width: Any, mean: Any, eps: Any) -> None:
    squares = _ZERO
    for i in range(width):
        squares += (x[i] - mean) * (x[i] - mean)
    factor = np.float32(1 / math.sqrt(squares / width + eps))
    for i in range(width):
        y[i] = (x[i] - mean) * factor * gain[i]


@kernel
def norm(f: Any, numbers: Any) -> None:
    width = f[at.WIDTH]
    x, y, mean = reals(f[at.X], width), reals(f[at.Y], width), _ZERO
    if f[at.MEAN]:
        for i in range(width):
            mean += x[i]
        mean /= np.float32(width)
    normalise(x, y, reals(f[at.GAIN], width), width, mean, numbers[at.EPS])
    if f[at.SHIFT]:
        shift = reals(f[at.SHIFT], width)
        for i in range(width):
            y[i] += shift[i]


@kernel
def turn(f: Any, numbers: Any) -> None:
    half, gain = f[at.WIDTH] // 2, np.float32(numbers[at.FACTOR])
    y, speed, placed = reals(f[at.Y], 2 * half), reals(f[at.SPEED], half), float(f[at.PLACED])
    for i in range(half):
        angle = placed * float(speed[i])  # float32 would be too coarse at large positions
        y[i] = np.float32(math.cos(angle)) * gain
        y[half + i] = np.float32(math.sin(angle)) * gain


@kernel
def rotate(x: Any, angles: Any, half: Any) -> None:
    for i in range(half):
        first, second, cosine, sine = x[i], x[half + i], angles[i], angles[half + i]
        x[i] = first * cosine - second * sine
        x[half + i] = second * cosine + first * sine


@kernel
def prepare(x: Any, f: Any, gain: Any, eps: Any, angles: Any) -> None:
    size = f[at.HEAD]
    if gain:
        normalise(x, x, reals(gain, size), size, _ZERO, eps)
    if angles:
        rotate(x, reals(angles, size), size // 2)


@kernel
def fetch(address: Any, size: Any) -> None:
    """So many numbers from an address will be read soon."""
    for place in range(0, 4 * size, 64):
        _prefetch(address + place)


@kernel
def score(query: Any, keys: Any, scores: Any, size: Any, ahead: Any) -> Any:
    """query keys / sqrt(size), and the largest; as much will be read from `ahead` soon"""
    count, scale, most = len(scores), np.float32(1 / math.sqrt(size)), np.float32(-np.inf)
    for slot in range(0, count // 4 * 4, 4):
        a, b, c, d = dots(keys, slot * size, (slot + 1) * size, (slot + 2) * size, (slot + 3) * size, query, size)
        fetch(ahead + 4 * slot * size, 4 * size)
        scores[slot], scores[slot + 1], scores[slot + 2], scores[slot + 3] = a * scale, b * scale, c * scale, d * scale
    for slot in range(count // 4 * 4, count):
        scores[slot] = dot(keys, slot * size, query, size) * scale
    for slot in range(count):
        most = max(most, scores[slot])
    return most


@kernel
def blend(values: Any, weights: Any, size: Any, y: Any, ahead: Any) -> None:
    """y += weights values; as much will be read from `ahead` soon"""
    count = len(weights)
    for slot in range(0, count // 4 * 4, 4):
        fetch(ahead + 4 * slot * size, 4 * size)
        a, b, c, d = weights[slot], weights[slot + 1], weights[slot + 2], weights[slot + 3]
        row_a, row_b = values[slot * size : (slot + 1) * size], values[(slot + 1) * size : (slot + 2) * size]
        row_c, row_d = values[(slot + 2) * size : (slot + 3) * size], values[(slot + 3) * size : (slot + 4) * size]
        for i in range(size):
            y[i] += a * row_a[i] + b * row_b[i] + c * row_c[i] + d * row_d[i]
    for slot in range(count // 4 * 4, count):
        weight, value = weights[slot], values[slot * size : (slot + 1) * size]
        for i in range(size):
            y[i] += weight * value[i]


@kernel
def mix(query: Any, keys: Any, values: Any, scores: Any, size: Any, y: Any, ahead: Any) -> None:
    """y = softmax(query keys / sqrt(size)) values; the next keys are at `ahead`"""
    most, total = score(query, keys, scores, size, values.ctypes.data), _ZERO
    for slot in range(len(scores)):
        scores[slot] = exp(scores[slot] - most)
    for slot in range(len(scores)):
        total += scores[slot]
    for i in range(size):
        y[i] = _ZERO
    blend(values, scores, size, y, ahead)
    for i in range(size):
        y[i] /= total


@kernel
def attend_group(f: Any, numbers: Any, group: Any) -> None:
    heads, groups, size, slot = f[at.HEADS], f[at.GROUPS], f[at.HEAD], f[at.SLOT]
    x = reals(f[at.X], (heads + 2 * groups) * size)
    cache = group * f[at.CAPACITY] * size
    keys = reals(f[at.KEYS], (group + 1) * f[at.CAPACITY] * size)[cache:]
    values = reals(f[at.VALUES], (group + 1) * f[at.CAPACITY] * size)[cache:]
    key, value = x[(heads + group) * size :], x[(heads + groups + group) * size :]
    prepare(key, f, f[at.NORM_K], numbers[at.EPS], f[at.ANGLES])
    keys[slot * size : (slot + 1) * size], values[slot * size : (slot + 1) * size] = key[:size], value[:size]
    shared = heads // groups
    following = f[at.KEYS] + 4 * ((group + 1) * f[at.CAPACITY] + f[at.FIRST]) * size
    for head in range(group * shared, (group + 1) * shared):
        query = x[head * size :]
        prepare(query, f, f[at.NORM_Q], numbers[at.EPS], f[at.ANGLES])
        scores = reals(f[at.SCORES] + 4 * head * f[at.SCORE_SIZE], slot + 1 - f[at.FIRST])
        mix(query, keys[f[at.FIRST] * size :], values[f[at.FIRST] * size :], scores, size,
            reals(f[at.Y] + 4 * head * size, size), following)  # fmt: skip


@kernel
def attend(f: Any, numbers: Any, part: Any) -> None:
    """Key/value heads and the query heads that share them; writes the new keys and values into the cache."""
    groups, parts = f[at.GROUPS], f[at.PARTS]
    for group in range(groups * part // parts, groups * (part + 1) // parts):
        attend_group(f, numbers, group)


@kernel
def finished(total: Any, row: Any, scales: Any, bias: Any) -> Any:
    if scales:
        total *= reals(scales, row + 1)[row]
    if bias:
        total += reals(bias, row + 1)[row]
    return total


@kernel
def gate(f: Any, row: Any, rows: Any, opening: Any, total: Any) -> None:
    opening = finished(opening, row, f[at.SCALES], f[at.BIAS])
    total = finished(total, rows + row, f[at.SCALES], f[at.BIAS])
    reals(f[at.Y], row + 1)[row] = opening * sigmoid(opening) * total


@kernel
def write(f: Any, row: Any, total: Any) -> None:
    total, y, bend = finished(total, row, f[at.SCALES], f[at.BIAS]), reals(f[at.Y], row + 1), f[at.BEND]
    if bend == at.ADD:
        total += y[row]
    elif bend == at.GELU:
        total = gelu(total)
    elif bend == at.GELU_EXACT:
        total = gelu_exact(total)
    elif bend == at.RELU:
        total = max(total, _ZERO) if total == total else total
    y[row] = total


@kernel
def product(f: Any, part: Any, weight: Any) -> None:
    rows, width, stride = f[at.ROWS], f[at.WIDTH], f[at.STRIDE]
    if f[at.BEND] == at.SILU:
        rows //= 2
    begin, end = rows * part // f[at.PARTS], rows * (part + 1) // f[at.PARTS]
    x = reals(f[at.X], width)
    if f[at.BEND] == at.SILU:
        for row in range(begin, end - 1, 2):
            a, b, c, d = dots(weight, row * stride, (row + 1) * stride, (rows + row) * stride,
                              (rows + row + 1) * stride, x, width)  # fmt: skip
            gate(f, row, rows, a, c)
            gate(f, row + 1, rows, b, d)
        if (end - begin) % 2:
            row = end - 1
            gate(f, row, rows, dot(weight, row * stride, x, width), dot(weight, (rows + row) * stride, x, width))
        return
    whole = begin + (end - begin) // 4 * 4
    for row in range(begin, whole, 4):
        a, b, c, d = dots(weight, row * stride, (row + 1) * stride, (row + 2) * stride, (row + 3) * stride, x, width)
        write(f, row, a)
        write(f, row + 1, b)
        write(f, row + 2, c)
        write(f, row + 3, d)
    for row in range(whole, end):
        write(f, row, dot(weight, row * stride, x, width))


@kernel
def remember(f: Any, unit: Any, i: Any, forget: Any, g: Any, o: Any) -> None:
    before, after = reals(f[at.BEFORE_C], unit + 1), reals(f[at.AFTER_C], unit + 1)
    carried = sigmoid(forget) * before[unit] + sigmoid(i) * tanh(g)
    after[unit] = carried
    reals(f[at.Y], unit + 1)[unit] = sigmoid(o) * tanh(carried)


@kernel
def squash(f: Any, unit: Any, total: Any) -> None:
    reals(f[at.Y], unit + 1)[unit] = max(total, _ZERO) if f[at.GATING] == at.RNN_RELU else tanh(total)


@kernel
def cell(f: Any, part: Any, of_input: Any, of_hidden: Any) -> None:
    """A part of the units of a recurrent layer; the memory before stays, for other continuations."""
    hidden, kind, width = f[at.HIDDEN], f[at.GATING], f[at.WIDTH]
    x, h = reals(f[at.X], width), reals(f[at.BEFORE_H], hidden)
    begin, end = hidden * part // f[at.PARTS], hidden * (part + 1) // f[at.PARTS]
    gates = 4 if kind == at.LSTM else 3 if kind == at.GRU else 1
    for unit in range(begin, end):
        b, c = unit + min(1, gates - 1) * hidden, unit + min(2, gates - 1) * hidden
        d, sx, sh = unit + (gates - 1) * hidden, f[at.STRIDE_X], f[at.STRIDE_H]
        if gates == 1:
            total = finished(dot(of_input, unit * sx, x, width), unit, f[at.SCALES_X], f[at.BIAS_X])
            total += finished(dot(of_hidden, unit * sh, h, hidden), unit, f[at.SCALES_H], 0)
            squash(f, unit, total)
            continue
        xs = dots(of_input, unit * sx, b * sx, c * sx, d * sx, x, width)
        hs = dots(of_hidden, unit * sh, b * sh, c * sh, d * sh, h, hidden)
        x0, x1 = finished(xs[0], unit, f[at.SCALES_X], f[at.BIAS_X]), finished(xs[1], b, f[at.SCALES_X], f[at.BIAS_X])
        x2, x3 = finished(xs[2], c, f[at.SCALES_X], f[at.BIAS_X]), finished(xs[3], d, f[at.SCALES_X], f[at.BIAS_X])
        h0, h1 = finished(hs[0], unit, f[at.SCALES_H], 0), finished(hs[1], b, f[at.SCALES_H], 0)
        h2, h3 = finished(hs[2], c, f[at.SCALES_H], 0), finished(hs[3], d, f[at.SCALES_H], 0)
        if kind == at.LSTM:
            remember(f, unit, x0 + h0, x1 + h1, x2 + h2, x3 + h3)
        else:
            reset, update = sigmoid(x0 + h0), sigmoid(x1 + h1)
            new = tanh(x2 + reset * (h2 + reals(f[at.BIAS_NEW], unit + 1)[unit]))
            reals(f[at.Y], unit + 1)[unit] = (_ONE - update) * new + update * h[unit]
