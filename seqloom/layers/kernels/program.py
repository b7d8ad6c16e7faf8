"""Program: the operations of one token as a table of addresses, filled once and run as one call per token.

Weights stay where the model has them, so changes in place are followed; a program must be made anew when the model's
tensors are replaced.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqloom.layers.kernels import engine
from seqloom.layers.kernels import fields as at

_PART = 24_000  # weights that are worth a part of their own: about a microsecond
_LINE = 16  # several rows: there is room for a multiple of this
_TILE = 8  # most outputs of a tile (tiles.py)


class Matrix(NamedTuple):
    """A linear layer as kernels read it: y = (weight x) * scales + bias."""

    weight: Tensor  # (out, width or more): float32, or int8 with padding
    scales: Tensor | None  # of int8: (out,)
    bias: Tensor | None
    width: int


class Unsupported(Exception):
    """What the kernels do not compute; the message says why."""


def room_of(rows: int) -> int:
    """For this number of rows; 1: a single row has programs of its own."""
    return 1 if rows == 1 else -(-rows // _LINE) * _LINE


class Program:
    """`room`: of how many rows; 1: one row, whose vectors lie as they are, otherwise see rows.py."""

    def __init__(self, threads: int, room: int = 1) -> None:
        found = engine.runner()
        if found is None:
            raise Unsupported("no kernels")
        self.run_code, self.threads, self.room, self.lock = found, threads, room, Lock()
        self.kept: list[Tensor] = []  # what the table points at
        self.rows: list[dict[int, int]] = []
        self.reals: list[float] = []
        self.shared: dict[tuple[str, int], int] = {}

    def space(self, size: int, use: str = "") -> int:
        """The address of a vector of every row, between operations. `use`: layers have the same space for the same."""
        if not use:
            return self.address(torch.zeros(size * self.room))
        if (use, size) not in self.shared:
            self.shared[use, size] = self.space(size)
        return self.shared[use, size]

    def address(self, tensor: Tensor | None) -> int:
        """Of a float32 vector that the program holds on to; 0: None."""
        if tensor is None:
            return 0
        return self._keep(tensor, torch.float32)

    def operation(self, kind: int, real: float = 0.0, parts: int = 1, **values: int) -> int:
        """Append an operation; `values` by the names of its fields. Returns its number."""
        row = {at.KIND: kind, at.PARTS: max(1, parts), at.ROOM: self.room} | {
            getattr(at, name): value for name, value in values.items()
        }
        self.rows.append(row)
        self.reals.append(real)
        return len(self.rows) - 1

    def product(self, matrix: Matrix, x: int, y: int, bend: int = at.NONE) -> int:
        rows, stride = matrix.weight.shape
        parts = min(self.parts(rows * stride * self.room), max(1, rows // (8 if bend == at.SILU else 4)))
        weight, scales, size = self.matrix(matrix)
        return self.operation(
            at.PRODUCT, parts=parts, X=x, Y=y, WIDTH=matrix.width, WEIGHT=weight, SCALES=scales,
            BIAS=self.address(matrix.bias), ROWS=rows, STRIDE=stride, BYTES=size, BEND=bend,
            **self._sums(matrix, y, bend, parts)
        )  # fmt: skip

    def _sums(self, matrix: Matrix, y: int, bend: int, parts: int) -> dict[str, int]:
        """Of several rows: where sums are kept, and the memory in which int8 becomes float32."""
        if self.room == 1:
            return {}
        rows, stride = matrix.weight.shape
        found = {"SUMS": y if bend == at.NONE else self.space(rows, "sums")}
        if matrix.scales is not None:
            found |= {"SPARE": self.address(torch.empty(parts * _TILE * stride)), "SPARE_SIZE": _TILE * stride}
        return found

    def matrix(self, matrix: Matrix) -> tuple[int, int, int]:
        """The addresses of the weights and of their scales, and the bytes of a weight."""
        if matrix.scales is None:
            return self._keep(matrix.weight, torch.float32), 0, 4
        return self._keep(matrix.weight, torch.int8), self.address(matrix.scales.float()), 1

    def parts(self, weights: int) -> int:
        """Into how many parts an operation of so many multiplications is worth being cut."""
        return 1 if self.threads == 1 else min(4 * self.threads, weights // _PART)

    def close(self) -> Program:
        """The table is complete."""
        self.table = np.zeros((len(self.rows), at.SIZE), np.int64)
        self.numbers = np.zeros((len(self.rows), 2), np.float64)
        for number, row in enumerate(self.rows):
            for field, value in row.items():
                self.table[number, field] = value
        self.numbers[:, 0] = self.reals
        self.control = np.zeros(64, np.int64)
        self.control[at.COUNT : at.NUMBERS + 1] = len(self.rows), self.table.ctypes.data, self.numbers.ctypes.data
        self.place = self.control.ctypes.data
        return self

    def run(self) -> None:
        self.control[at.TICKET], self.control[at.ARRIVED] = 1 << 30, 0  # no part of any operation
        self.run_code(self.place, self.threads)

    def _keep(self, tensor: Tensor, dtype: torch.dtype) -> int:
        if not tensor.is_cpu or tensor.dtype != dtype:
            raise Unsupported(f"kernels compute in float32 on a CPU, not in {tensor.dtype} on {tensor.device.type}")
        if not tensor.is_contiguous():
            raise Unsupported("a weight is not stored row by row")
        self.kept.append(tensor.detach())
        return tensor.data_ptr()


class Row:
    """One row through one matrix, (1, width) -> (1, out)."""

    def __init__(self, matrix: Matrix, threads: int) -> None:
        self.program, self.out = Program(threads), len(matrix.weight)
        self.program.product(matrix, 0, 0)
        self.program.close()

    def __call__(self, x: Tensor) -> Tensor:
        found = torch.empty(1, self.out)
        x = x.contiguous()
        with self.program.lock:
            self.program.table[0, at.X], self.program.table[0, at.Y] = x.data_ptr(), found.data_ptr()
            self.program.run()
        return found
