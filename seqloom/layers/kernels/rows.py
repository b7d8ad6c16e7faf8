"""Compiled operations of one token of several rows, which lie side by side: a vector of every row is (width, ROOM).

So that sums over a width, and whatever is done to each number, are done to as many rows at a time as the vector unit
has lanes. What is computed for columns behind the last row is ignored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from seqloom.layers.kernels import fields as at
from seqloom.layers.kernels import jit
from seqloom.layers.kernels.jit import kernel
from seqloom.layers.kernels.maths import gelu, gelu_exact, sigmoid, tanh
from seqloom.layers.kernels.operations import mix, prepare, reals, wholes
from seqloom.layers.kernels.tiles import shape, tile

_pointer, _carray = jit.pointer(), jit.carray()
_ONE, _ZERO = np.float32(1), np.float32(0)
_LANES, _OUTPUTS = shape()
_wide, _narrow = tile(_OUTPUTS, 2, _LANES), tile(_OUTPUTS, 1, _LANES)
_wide_one, _narrow_one = tile(1, 2, _LANES), tile(1, 1, _LANES)


@kernel
def counters(address: Any, size: Any) -> Any:
    return _carray(_pointer(address), (size,), np.int64)


@kernel
def line(address: Any, number: Any, room: Any) -> Any:
    """One number of every row."""
    return reals(address + 4 * number * room, room)


@kernel
def begin(f: Any, numbers: Any) -> None:
    live, width, room, factor = f[at.LIVE], f[at.WIDTH], f[at.ROOM], np.float32(numbers[at.FACTOR])
    x = reals(f[at.X], live * width)
    for i in range(width):
        y = line(f[at.Y], i, room)
        for row in range(live):
            y[row] = x[row * width + i] * factor
        for row in range(live, room):
            y[row] = _ZERO


@kernel
def end(f: Any) -> None:
    live, width, room = f[at.LIVE], f[at.WIDTH], f[at.ROOM]
    y = reals(f[at.Y], live * width)
    for i in range(width):
        x = line(f[at.X], i, room)
        for row in range(live):
            y[row * width + i] = x[row]


@kernel
def place(f: Any) -> None:
    live, width, room = f[at.LIVE], f[at.WIDTH], f[at.ROOM]
    places, y = counters(f[at.PLACES], live), reals(f[at.Y], width * room)
    for row in range(live):
        added = reals(f[at.ROW] + 4 * width * places[row], width)
        for i in range(width):
            y[i * room + row] += added[i]


@kernel
def norm(f: Any, numbers: Any) -> None:
    width, room = f[at.WIDTH], f[at.ROOM]
    mean, factor = line(f[at.SPARE], 0, room), line(f[at.SPARE], 1, room)
    mean[:], factor[:] = _ZERO, _ZERO
    if f[at.MEAN]:
        for i in range(width):
            x = line(f[at.X], i, room)
            for row in range(room):
                mean[row] += x[row] / np.float32(width)
    for i in range(width):
        x = line(f[at.X], i, room)
        for row in range(room):
            factor[row] += (x[row] - mean[row]) * (x[row] - mean[row])
    for row in range(room):
        factor[row] = np.float32(1 / math.sqrt(factor[row] / width + numbers[at.EPS]))
    gain = reals(f[at.GAIN], width)
    for i in range(width):
        x, y = line(f[at.X], i, room), line(f[at.Y], i, room)
        shift = reals(f[at.SHIFT], width)[i] if f[at.SHIFT] else _ZERO
        for row in range(room):
            y[row] = (x[row] - mean[row]) * factor[row] * gain[i] + shift


@kernel
def turn(f: Any, numbers: Any) -> None:
    """As for one row, one row after the other."""
    half, gain, places = f[at.WIDTH] // 2, np.float32(numbers[at.FACTOR]), counters(f[at.PLACES], f[at.LIVE])
    speed = reals(f[at.SPEED], half)
    for row in range(f[at.LIVE]):
        y, placed = reals(f[at.Y] + 8 * half * row, 2 * half), float(places[row])
        for i in range(half):
            angle = placed * float(speed[i])  # float32 would be too coarse at large positions
            y[i] = np.float32(math.cos(angle)) * gain
            y[half + i] = np.float32(math.sin(angle)) * gain


@kernel
def gather(x: Any, begin: Any, room: Any, row: Any, y: Any, size: Any) -> None:
    """y = numbers of one row"""
    column = x[begin * room + row :]
    for i in range(size):
        y[i] = column[i * room]


@kernel
def attend_one(f: Any, numbers: Any, row: Any, group: Any, spare: Any, scores: Any) -> None:
    heads, groups, size, room = f[at.HEADS], f[at.GROUPS], f[at.HEAD], f[at.ROOM]
    slot, eps = counters(f[at.HELD], row + 1)[row], numbers[at.EPS]
    angles = f[at.ANGLES] and f[at.ANGLES] + 4 * row * size
    first = max(0, slot - f[at.WINDOW] + 1) if f[at.WINDOW] else 0
    start, seen = 4 * size * ((row * groups + group) * f[at.CAPACITY] + first), slot + 1 - first
    keys, values = reals(f[at.KEYS] + start, seen * size), reals(f[at.VALUES] + start, seen * size)
    x, y = reals(f[at.X], (heads + 2 * groups) * size * room), reals(f[at.Y], heads * size * room)
    key, following = keys[(seen - 1) * size :], f[at.KEYS] + start + 4 * size * f[at.CAPACITY]
    gather(x, (heads + group) * size, room, row, key, size)
    prepare(key, f, f[at.NORM_K], eps, angles)
    gather(x, (heads + groups + group) * size, room, row, values[(seen - 1) * size :], size)
    query, mixed = reals(spare, size), reals(spare + 4 * size, size)
    for head in range(group * (heads // groups), (group + 1) * (heads // groups)):
        gather(x, head * size, room, row, query, size)
        prepare(query, f, f[at.NORM_Q], eps, angles)
        mix(query, keys, values, reals(scores, seen), size, mixed, following)
        column = y[head * size * room + row :]
        for i in range(size):
            column[i * room] = mixed[i]


@kernel
def attend(f: Any, numbers: Any, part: Any) -> None:
    """Each row over its own slots; writes the new keys and values into the cache."""
    count, parts, groups = f[at.LIVE] * f[at.GROUPS], f[at.PARTS], f[at.GROUPS]
    spare, scores = f[at.SPARE] + 4 * part * f[at.SPARE_SIZE], f[at.SCORES] + 4 * part * f[at.SCORE_SIZE]
    for unit in range(count * part // parts, count * (part + 1) // parts):
        attend_one(f, numbers, unit // groups, unit % groups, spare, scores)


@kernel
def multiply(weight: Any, stride: Any, f: Any, outputs: Any, sums: Any) -> None:
    """Sums of some outputs, all rows. `weight`: address; `stride`: bytes; `outputs`: _OUTPUTS or 1."""
    room, width, row = f[at.ROOM], f[at.WIDTH], 0
    while row < room:
        wide = room - row >= 2 * _LANES
        x, y = f[at.X] + 4 * row, sums + 4 * row
        if outputs == _OUTPUTS and wide:
            _wide(weight, stride, x, 4 * room, width, y, 4 * room)
        elif outputs == _OUTPUTS:
            _narrow(weight, stride, x, 4 * room, width, y, 4 * room)
        elif wide:
            _wide_one(weight, stride, x, 4 * room, width, y, 4 * room)
        else:
            _narrow_one(weight, stride, x, 4 * room, width, y, 4 * room)
        row += 2 * _LANES if wide else _LANES


@kernel
def unpack(f: Any, output: Any, outputs: Any, spare: Any) -> None:
    """Some outputs' weights as real numbers."""
    size = outputs * f[at.STRIDE]
    weight, y = wholes(f[at.WEIGHT] + output * f[at.STRIDE], size), reals(spare, size)
    for i in range(size):
        y[i] = np.float32(weight[i])


@kernel
def sum_up(f: Any, begin: Any, end: Any, part: Any) -> None:
    """The products of these outputs."""
    spare, output = f[at.SPARE] + 4 * part * f[at.SPARE_SIZE], begin
    while output < end:
        outputs = _OUTPUTS if end - output >= _OUTPUTS else 1
        weight = f[at.WEIGHT] + 4 * output * f[at.STRIDE]
        if f[at.BYTES] == 1:
            unpack(f, output, outputs, spare)
            weight = spare
        multiply(weight, 4 * f[at.STRIDE], f, outputs, f[at.SUMS] + 4 * output * f[at.ROOM])
        output += outputs


@kernel
def finish(f: Any, output: Any) -> None:
    """Scales and bias, in place."""
    sums = line(f[at.SUMS], output, f[at.ROOM])
    scale = reals(f[at.SCALES], output + 1)[output] if f[at.SCALES] else _ONE
    bias = reals(f[at.BIAS], output + 1)[output] if f[at.BIAS] else _ZERO
    for row in range(len(sums)):
        sums[row] = sums[row] * scale + bias


@kernel
def bend(sums: Any, y: Any, kind: Any) -> None:
    room = len(sums)
    if kind == at.ADD:
        for row in range(room):
            y[row] += sums[row]
    elif kind == at.GELU:
        for row in range(room):
            y[row] = gelu(sums[row])
    elif kind == at.GELU_EXACT:
        for row in range(room):
            y[row] = gelu_exact(sums[row])
    elif kind == at.RELU:
        for row in range(room):
            y[row] = max(sums[row], _ZERO) if sums[row] == sums[row] else sums[row]


@kernel
def product(f: Any, part: Any) -> None:
    rows, room, kind = f[at.ROWS], f[at.ROOM], f[at.BEND]
    if kind == at.SILU:
        rows //= 2
    begin, end = rows * part // f[at.PARTS], rows * (part + 1) // f[at.PARTS]
    sum_up(f, begin, end, part)
    for output in range(begin, end):
        finish(f, output)
        if kind != at.NONE and kind != at.SILU:
            bend(line(f[at.SUMS], output, room), line(f[at.Y], output, room), kind)
    if kind == at.SILU:
        sum_up(f, rows + begin, rows + end, part)
        for output in range(begin, end):
            finish(f, rows + output)
            opening, total = line(f[at.SUMS], output, room), line(f[at.SUMS], rows + output, room)
            y = line(f[at.Y], output, room)
            for row in range(room):
                y[row] = opening[row] * sigmoid(opening[row]) * total[row]


@kernel
def add(x: Any, y: Any) -> None:
    for row in range(len(x)):
        x[row] += y[row]


@kernel
def open_gate(x: Any, y: Any) -> None:
    """x = sigmoid(x + y)"""
    for row in range(len(x)):
        x[row] = sigmoid(x[row] + y[row])


@kernel
def squash(x: Any) -> None:
    for row in range(len(x)):
        x[row] = tanh(x[row])


@kernel
def step_rnn(f: Any, unit: Any) -> None:
    room = f[at.ROOM]
    y, x, h = line(f[at.Y], unit, room), line(f[at.X], unit, room), line(f[at.SUMS], unit, room)
    add(x, h)
    if f[at.GATING] == at.RNN_RELU:
        bend(x, y, at.RELU)
        return
    squash(x)
    y[:] = x


@kernel
def step_gru(f: Any, unit: Any) -> None:
    hidden, room, y = f[at.HIDDEN], f[at.ROOM], line(f[at.Y], unit, f[at.ROOM])
    reset, update = line(f[at.X], unit, room), line(f[at.X], hidden + unit, room)
    new, h = line(f[at.X], 2 * hidden + unit, room), line(f[at.SUMS], 2 * hidden + unit, room)
    open_gate(reset, line(f[at.SUMS], unit, room))
    open_gate(update, line(f[at.SUMS], hidden + unit, room))
    shift = reals(f[at.BIAS_NEW], hidden)[unit]
    for row in range(room):
        new[row] += reset[row] * (h[row] + shift)
    squash(new)
    for row in range(room):
        y[row] = (_ONE - update[row]) * new[row] + update[row] * y[row]


@kernel
def step_lstm(f: Any, unit: Any) -> None:
    hidden, room = f[at.HIDDEN], f[at.ROOM]
    y, carried = line(f[at.Y], unit, room), line(f[at.AFTER_C], unit, room)
    i, forget = line(f[at.X], unit, room), line(f[at.X], hidden + unit, room)
    g, o = line(f[at.X], 2 * hidden + unit, room), line(f[at.X], 3 * hidden + unit, room)
    open_gate(i, line(f[at.SUMS], unit, room))
    open_gate(forget, line(f[at.SUMS], hidden + unit, room))
    open_gate(o, line(f[at.SUMS], 3 * hidden + unit, room))
    add(g, line(f[at.SUMS], 2 * hidden + unit, room))
    squash(g)
    for row in range(room):
        carried[row] = forget[row] * carried[row] + i[row] * g[row]
    y[:] = carried
    squash(y)
    for row in range(room):
        y[row] *= o[row]


@kernel
def gates(f: Any, part: Any) -> None:
    """The new memory of a part of the units of a recurrent layer, in place, from the products for its gates."""
    hidden, kind = f[at.HIDDEN], f[at.GATING]
    for unit in range(hidden * part // f[at.PARTS], hidden * (part + 1) // f[at.PARTS]):
        if kind == at.LSTM:
            step_lstm(f, unit)
        elif kind == at.GRU:
            step_gru(f, unit)
        else:
            step_rnn(f, unit)
