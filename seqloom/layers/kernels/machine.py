"""Compiled program: the operations of one token in order, shared among threads without waiting for any to begin.

All threads of a region come here. The first to arrive leads: it walks through the operations and announces the parts of
those that are cut. Everybody takes parts by drawing tickets, the leader too, so a thread that comes late costs nothing.
A ticket is the number of the operation and that of the part, in one atomic counter: nobody can take a part of an
operation that is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seqloom.layers.kernels import fields as at
from seqloom.layers.kernels import jit, rows
from seqloom.layers.kernels.jit import kernel
from seqloom.layers.kernels.operations import attend, cell, copy, norm, place, product, reals, turn, wholes

_pointer, _carray = jit.pointer(), jit.carray()
_load, _store, _add = jit.load(), jit.store(), jit.add()
_SHIFT, _PART = 32, (1 << 32) - 1


@kernel
def operate(f: Any, numbers: Any, part: Any) -> None:
    if f[at.ROOM] > 1:
        operate_on_rows(f, numbers, part)
        return
    kind = f[at.KIND]
    if kind == at.PRODUCT:
        size = f[at.ROWS] * f[at.STRIDE]
        if f[at.BYTES] == 1:
            product(f, part, wholes(f[at.WEIGHT], size))
        else:
            product(f, part, reals(f[at.WEIGHT], size))
    elif kind == at.ATTEND:
        attend(f, numbers, part)
    elif kind == at.NORM:
        norm(f, numbers)
    elif kind == at.CELL:
        most = 4 * f[at.HIDDEN]
        if f[at.CELL_BYTES] == 1:
            cell(f, part, wholes(f[at.WEIGHT_X], most * f[at.STRIDE_X]), wholes(f[at.WEIGHT_H], most * f[at.STRIDE_H]))
        else:
            cell(f, part, reals(f[at.WEIGHT_X], most * f[at.STRIDE_X]), reals(f[at.WEIGHT_H], most * f[at.STRIDE_H]))
    elif kind == at.COPY:
        copy(f, numbers)
    elif kind == at.PLACE:
        place(f)
    elif kind == at.TURN:
        turn(f, numbers)


@kernel
def operate_on_rows(f: Any, numbers: Any, part: Any) -> None:
    kind = f[at.KIND]
    if kind == at.PRODUCT:
        rows.product(f, part)
    elif kind == at.ATTEND:
        rows.attend(f, numbers, part)
    elif kind == at.NORM:
        rows.norm(f, numbers)
    elif kind == at.GATES:
        rows.gates(f, part)
    elif kind == at.BEGIN:
        rows.begin(f, numbers)
    elif kind == at.END:
        rows.end(f)
    elif kind == at.PLACE:
        rows.place(f)
    elif kind == at.TURN:
        rows.turn(f, numbers)


@kernel
def draw(table: Any, numbers: Any, ticket: Any) -> Any:
    """Take parts of the announced operation until none is left; how many."""
    taken = 0
    while True:
        drawn = _add(ticket, 1)
        operation, part = drawn >> _SHIFT, drawn & _PART
        if operation >= len(table) or part >= table[operation, at.PARTS]:
            return taken
        operate(table[operation], numbers[operation], part)
        taken += 1


@kernel
def lead(table: Any, numbers: Any, ticket: Any, done: Any) -> None:
    for operation in range(len(table)):
        parts = table[operation, at.PARTS]
        if parts == 1:
            operate(table[operation], numbers[operation], 0)
            continue
        _store(done, 0)
        _store(ticket, operation << _SHIFT)
        mine = draw(table, numbers, ticket)
        while _load(done) + mine < parts:
            pass
    _store(ticket, len(table) << _SHIFT)


@kernel
def follow(table: Any, numbers: Any, ticket: Any, done: Any) -> None:
    while True:
        shown = _load(ticket)
        operation = shown >> _SHIFT
        if operation >= len(table):
            return
        if (shown & _PART) < table[operation, at.PARTS]:
            _add(done, draw(table, numbers, ticket))


@kernel
def run(address: Any) -> None:
    control = _carray(_pointer(address), (64,), np.int64)
    shape = control[at.COUNT]
    table = _carray(_pointer(control[at.OPERATIONS]), (shape, at.SIZE), np.int64)
    numbers = _carray(_pointer(control[at.NUMBERS]), (shape, 2), np.float64)
    ticket, done = address + 8 * at.TICKET, address + 8 * at.DONE
    if _add(address + 8 * at.ARRIVED, 1) == 0:
        lead(table, numbers, ticket, done)
    else:
        follow(table, numbers, ticket, done)


def compiled(version: str) -> Any:
    """`version` of the sources: what was kept on disk for other ones is not used."""

    def program(address: Callable[..., Any]) -> None:
        if version != "":
            run(address)

    return jit.entry(program)
