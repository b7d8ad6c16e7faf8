"""The inner loop of a product of a matrix with many rows, written for the vector unit instruction by instruction.

A tile is some outputs of one or two vectors of rows: all its sums stay in registers. Every weight is read once per
tile, as stored, and multiplied with the same input of many rows, which lie next to each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from seqloom.layers.kernels.jit import instructions


class Shape(NamedTuple):
    lanes: int  # rows in a vector
    outputs: int  # in a tile; its sums and inputs must fit into the registers


def shape() -> Shape:
    """Of a tile on this processor."""
    return Shape(16, 8) if torch.backends.cpu.get_cpu_capability() == "AVX512" else Shape(8, 4)


def tile(outputs: int, vectors: int, lanes: int) -> Any:
    """(weight, bytes between its outputs, x, bytes between its inputs, inputs, y, bytes between its outputs): y = W x.

    All addresses; x is (inputs, rows), y is (outputs, rows).
    """
    from numba import types
    from numba.extending import intrinsic

    def multiply(context: Any, weight: Any, step: Any, x: Any, line: Any, inputs: Any, y: Any, far: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _Tile(builder, outputs, vectors, lanes).write(*arguments)
            return target.get_dummy_value()

        return types.void(*[types.intp] * 7), code

    return intrinsic(multiply)


class _Tile:
    def __init__(self, builder: Any, outputs: int, vectors: int, lanes: int) -> None:
        ir = instructions()
        self.builder, self.outputs, self.vectors, self.lanes = builder, outputs, vectors, lanes
        self.whole, self.real, self.int32 = ir.IntType(64), ir.FloatType(), ir.IntType(32)
        self.vector, self.ir = ir.VectorType(self.real, lanes), ir

    def write(self, weight: Any, step: Any, x: Any, line: Any, inputs: Any, y: Any, far: Any) -> None:
        builder = self.builder
        before = builder.block
        rows = [self._pointer(self._past(weight, step, n), self.real) for n in range(self.outputs)]
        loop, after = builder.append_basic_block("inputs"), builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        index = builder.phi(self.whole)
        index.add_incoming(self.ir.Constant(self.whole, 0), before)
        sums = [[builder.phi(self.vector) for _ in range(self.vectors)] for _ in range(self.outputs)]
        added = self._add(sums, rows, builder.add(x, builder.mul(index, line)), index)
        following = builder.add(index, self.ir.Constant(self.whole, 1))
        index.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, inputs), loop, after)
        for old, new in zip(sums, added, strict=True):
            for before_loop, in_loop in zip(old, new, strict=True):
                before_loop.add_incoming(self.ir.Constant(self.vector, [0.0] * self.lanes), before)
                before_loop.add_incoming(in_loop, loop)
        builder.position_at_end(after)
        for n, row in enumerate(added):
            self._store(row, self._past(y, far, n))

    def _add(self, sums: Any, rows: Any, x: Any, index: Any) -> list[list[Any]]:
        builder, found = self.builder, []
        given = [builder.load(self._pointer(self._line(x, n), self.vector), align=4) for n in range(self.vectors)]
        for old, row in zip(sums, rows, strict=True):
            weight = self._spread(builder.load(builder.gep(row, [index]), align=4))
            products = [builder.fmul(weight, part, flags=("contract",)) for part in given]
            found.append([builder.fadd(a, b, flags=("contract",)) for a, b in zip(old, products, strict=True)])
        return found

    def _store(self, sums: Any, y: Any) -> None:
        for n, vector in enumerate(sums):
            self.builder.store(vector, self._pointer(self._line(y, n), self.vector), align=4)

    def _spread(self, scalar: Any) -> Any:
        """The same number in all lanes."""
        empty = self.ir.Constant(self.vector, self.ir.Undefined)
        one = self.builder.insert_element(empty, scalar, self.ir.Constant(self.int32, 0))
        lanes = self.ir.Constant(self.ir.VectorType(self.int32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, empty, lanes)

    def _past(self, address: Any, step: Any, count: int) -> Any:
        return self.builder.add(address, self.builder.mul(step, self.ir.Constant(self.whole, count)))

    def _line(self, address: Any, vector: int) -> Any:
        return self.builder.add(address, self.ir.Constant(self.whole, 4 * self.lanes * vector))

    def _pointer(self, address: Any, kind: Any) -> Any:
        return self.builder.inttoptr(address, kind.as_pointer())
