"""One token of every row through recurrent layers, as one compiled program; a test checks it against the cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqloom.layers.kernels import fields as at
from seqloom.layers.kernels.program import Program, Unsupported
from seqloom.layers.linear import matrix_of

Memory = tuple[Tensor, ...]


class Layers:
    """Cells of the kinds that have a kernel; states remain values, for new memory is written to new tensors."""

    def __init__(self, cells: Sequence[Any], threads: int) -> None:
        self.program = Program(threads)
        self.memories, self.hidden = cells[0].memories, cells[0].hidden
        self.numbers = [self._cell(cell) for cell in cells]
        self.program.close()

    def __call__(self, x: Tensor, state: Sequence[Memory]) -> tuple[Tensor, tuple[Memory, ...]]:
        """x (1, 1, inputs) and a memory per layer -> (1, 1, hidden) and the new memories."""
        table, kept, after = self.program.table, [x.contiguous()], []
        with self.program.lock:
            source = kept[0].data_ptr()
            for number, memory in zip(self.numbers, state, strict=True):
                old = [part.contiguous() for part in memory]
                new = tuple(torch.empty(1, self.hidden) for _ in old)
                table[number, at.X], table[number, at.Y] = source, new[0].data_ptr()
                table[number, at.BEFORE_H] = old[0].data_ptr()
                if self.memories > 1:
                    table[number, at.BEFORE_C], table[number, at.AFTER_C] = old[1].data_ptr(), new[1].data_ptr()
                source = new[0].data_ptr()
                kept += old
                after.append(new)
            self.program.run()
        return after[-1][0][:, None], tuple(after)

    def _cell(self, cell: Any) -> int:
        if cell.gating is None:
            raise Unsupported(f"{type(cell).__name__} has no kernel")
        program, of_input, of_hidden = self.program, matrix_of(cell.of_input), matrix_of(cell.of_hidden)
        weight_x, scales_x, size = program.matrix(of_input)
        weight_h, scales_h, size_h = program.matrix(of_hidden)
        if size != size_h:
            raise Unsupported("only one of two matrices of a cell is in int8")
        width, height = of_input.weight.size(1), of_hidden.weight.size(1)
        parts = min(program.parts(cell.gates * cell.hidden * (width + height)), cell.hidden)
        return program.operation(
            at.CELL, parts=parts, WIDTH=of_input.width, GATING=cell.gating, HIDDEN=cell.hidden, WEIGHT_X=weight_x,
            SCALES_X=scales_x, STRIDE_X=width, WEIGHT_H=weight_h, SCALES_H=scales_h, STRIDE_H=height,
            BIAS_X=program.address(cell.bias), BIAS_NEW=program.address(getattr(cell, "bias_new", None)),
            CELL_BYTES=size
        )  # fmt: skip


class RowsOfLayers:
    """The same for several rows, which lie side by side (rows.py)."""

    def __init__(self, cells: Sequence[Any], threads: int, room: int) -> None:
        self.program = program = Program(threads, room)
        self.memories, self.hidden = cells[0].memories, cells[0].hidden
        inputs = cells[0].of_input.in_features
        x = program.space(inputs)
        self.begin = program.operation(at.BEGIN, 1.0, Y=x, WIDTH=inputs)
        self.read: list[list[int]] = []
        self.written: list[list[int]] = []
        for cell in cells:
            x = self._cell(cell, x)
        program.close()

    def __call__(self, x: Tensor, state: Sequence[Memory]) -> tuple[Tensor, tuple[Memory, ...]]:
        """x (B, 1, inputs) and a memory per layer -> (B, 1, hidden) and the new memories."""
        table, kept, after = self.program.table, [x.contiguous()], []
        with self.program.lock:
            table[self.begin, at.X], table[:, at.LIVE] = kept[0].data_ptr(), len(x)
            for read, written, memory in zip(self.read, self.written, state, strict=True):
                old = [part.contiguous() for part in memory]
                new = tuple(torch.empty(len(x), self.hidden) for _ in old)
                table[read, at.X], table[written, at.Y] = _places(old), _places(new)
                kept += old
                after.append(new)
            self.program.run()
        return after[-1][0][:, None], tuple(after)

    def _cell(self, cell: Any, x: int) -> int:
        """Its memory is written in place."""
        if cell.gating is None:
            raise Unsupported(f"{type(cell).__name__} has no kernel")
        program, hidden = self.program, cell.hidden
        memory = [program.space(hidden) for _ in range(self.memories)]
        self.read.append([program.operation(at.BEGIN, 1.0, Y=part, WIDTH=hidden) for part in memory])
        of_input, of_hidden = (program.space(cell.gates * hidden, use) for use in ("of input", "of hidden"))
        program.product(matrix_of(cell.of_input), x, of_input)
        program.product(matrix_of(cell.of_hidden), memory[0], of_hidden)
        program.operation(
            at.GATES, parts=min(4 * program.threads, hidden) if program.threads > 1 else 1, X=of_input, SUMS=of_hidden,
            Y=memory[0], GATING=cell.gating, HIDDEN=hidden, BEFORE_H=memory[0], AFTER_C=memory[-1],
            BIAS_NEW=program.address(getattr(cell, "bias_new", None))
        )  # fmt: skip
        self.written.append([program.operation(at.END, X=part, WIDTH=hidden) for part in memory])
        return memory[0]


def _places(tensors: Sequence[Tensor]) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def layers_of(cells: Sequence[Any], threads: int, room: int) -> Layers | RowsOfLayers:
    return Layers(cells, threads) if room == 1 else RowsOfLayers(cells, threads, room)
