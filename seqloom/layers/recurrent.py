"""Recurrence: unroll any cell over time, layers and directions, with padding.

state = (layer 0, layer 1, ...), each layer the tuple of (B, H) tensors of its cell's memory

A cell defines one step. `project` needs no state, so it runs once for the whole sequence; `step` is
the recurrence. The loop over `step` is the reference; `sequence` computes the same faster, and is
used unless a tap is replaced, padding would have to be masked, adapters drop some of their inputs, or packed weights
make the loop quicker. If taps are recorded, the loop runs beside it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, at_end
from seqloom.core.choice import Choice, Demand
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.kernels.holder import Compiled
from seqloom.layers.kernels.recurrent import Layers, RowsOfLayers, layers_of
from seqloom.layers.linear import TiedLinear, is_packed

Memory = tuple[Tensor, ...]  # of one cell: (h,) or (h, c)


class Cell(nn.Module, ABC):
    gates: ClassVar[int]  # number of blocks of H rows in the weights
    memories: ClassVar[int] = 1  # number of tensors in its memory; the first is h
    blocks: ClassVar[tuple[str, ...]] = ()  # names of the blocks of the weights
    flow: ClassVar[dict[str, str]] = {}  # taps of gates that say how much of the memory a step keeps, or writes
    carries: ClassVar[tuple[str, str]] = ("state", "state")  # taps: memory at a step, what becomes of it at a later one
    gating: int | None = None  # which one-token kernel computes its step (layers/kernels/fields.py); None: none
    backwards = False  # reads from the end to the beginning

    def __init__(self, inputs: int, hidden: int, heads: int = 1) -> None:
        """`heads`: parts of the hidden vector whose units see only each other (a block-diagonal recurrent matrix)."""
        super().__init__()
        bound = 1 / math.sqrt(hidden)
        self.hidden, self.heads = hidden, heads
        self.weight_x = nn.Parameter(torch.empty(self.gates * hidden, inputs).uniform_(-bound, bound))
        self.weight_h = nn.Parameter(torch.empty(self.gates * hidden, hidden // heads).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(self.gates * hidden))
        self.of_input, self.of_hidden = TiedLinear(self, "weight_x", "bias"), TiedLinear(self, "weight_h")
        self.state = Tap()

    def project(self, x: Tensor) -> Tensor:
        # Autocast may run this product in low precision; the memory keeps the dtype of the weights.
        return self.of_input(x).to(self.bias.dtype)  # (..., gates * H)

    @abstractmethod
    def step(self, x: Tensor, memory: Memory) -> Memory:
        """One step on a projected input; returns the new memory, h first."""

    @abstractmethod
    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """All steps of a time-first input at once: returns (T, B, H) and the final memory."""

    def taps(self) -> Iterator[Tap]:
        return (child for child in self.children() if isinstance(child, Tap))

    def held(self) -> list[Tap]:
        """Where its memory passes at every step, in the order of the step."""
        return [self.state]

    @property
    def stepwise(self) -> bool:
        """Whether every step must be computed by itself: to replace it, or because adapters drop inputs at random."""
        if any(tap.edited for tap in self.taps()):
            return True
        return self.training and any(isinstance(part, nn.Dropout) for part in self.modules())

    def start(self, x: Tensor) -> Memory:
        shape, dtype = (x.size(0), self.hidden), self.bias.dtype
        return tuple(x.new_zeros(shape, dtype=dtype) for _ in range(self.memories))


def unroll(cell: Cell, x: Tensor, memory: Memory, mask: Tensor | None) -> tuple[Tensor, Memory]:
    """Run a cell over (B, T, inputs); padding leaves the memory unchanged."""
    whole = mask is None or cell.memories == 1  # then the final memory is one of the outputs
    if whole and x.size(1) > 1 and not cell.stepwise and not is_packed(cell.of_hidden, rows=x.size(0)):
        hidden, after = cell.sequence(x.transpose(0, 1), memory)
        hidden = hidden.transpose(0, 1)
        if any(tap.watched for tap in cell.taps()):
            step_by_step(cell, x, memory, mask)
        return hidden, after if mask is None else (at_last_step(hidden, memory[0], mask),)
    return step_by_step(cell, x, memory, mask)


def step_by_step(cell: Cell, x: Tensor, memory: Memory, mask: Tensor | None) -> tuple[Tensor, Memory]:
    """The reference: every step's activations pass the cell's taps."""
    outputs = []
    for t, x_t in enumerate(cell.project(x).unbind(1)):
        new = cell.step(x_t, memory)
        if mask is not None:
            real = mask[:, t, None]
            new = tuple(torch.where(real, after, before) for after, before in zip(new, memory, strict=True))
        memory = cell.state(new[0]), *new[1:]
        outputs.append(memory[0])
    if not outputs:
        return x.new_zeros(x.size(0), 0, cell.hidden), memory
    return torch.stack(outputs, dim=1), memory


def run_steps(kernel: Layers | RowsOfLayers, x: Tensor, state: Any, mask: Tensor | None) -> tuple[Tensor, State]:
    """All layers, token by token; padding leaves their memories unchanged."""
    outputs = []
    for t, x_t in enumerate(x.split(1, dim=1)):
        hidden, new = kernel(x_t, state)
        if mask is not None:
            real = mask[:, t, None]
            new = tuple(
                tuple(torch.where(real, *pair) for pair in zip(*layer, strict=True))
                for layer in zip(new, state, strict=True)
            )
            hidden = new[-1][0][:, None]
        outputs.append(hidden)
        state = new
    return torch.cat(outputs, dim=1) if len(outputs) > 1 else hidden, state


def at_last_step(hidden: Tensor, before: Tensor, mask: Tensor) -> Tensor:
    """The vector at each row's last real step, (B, T, H) -> (B, H); `before` in rows without one."""
    lengths = mask.sum(1)
    last = hidden[torch.arange(len(lengths), device=hidden.device), (lengths - 1).clamp(min=0)]
    return torch.where(lengths[:, None] > 0, last, before)


def reverse(x: Tensor, mask: Tensor | None) -> Tensor:
    """Reverse each row, keeping its padding on the right."""
    if mask is None:
        return x.flip(1)
    last = mask.sum(1, keepdim=True) - 1
    place = last - torch.arange(x.size(1), device=x.device)
    place = torch.where(place >= 0, place, torch.arange(x.size(1), device=x.device))
    return x.gather(1, place[..., None].expand_as(x))


class Recurrent(Compiled):
    """Stacked layers of one kind of cell, with dropout on the input, between layers and on the output."""

    def __init__(
        self,
        cell: Callable[[int, int], Cell],
        inputs: int,
        width: int,
        scale: float,
        depth: int,
        dropout: float,
        bidirectional: bool,
    ) -> None:
        super().__init__()
        self.inputs, self.width, self.scale = inputs, width, scale
        self.kind = "bidirectional" if bidirectional else "causal"
        directions = 2 if bidirectional else 1
        self.layers = nn.ModuleList(
            nn.ModuleList(cell(width if n else inputs, width // directions) for _ in range(directions))
            for n in range(depth)
        )
        later: Any = [layer[1] for layer in self.layers if bidirectional]  # type: ignore[index]
        for second in later:
            second.backwards = True
        self.dropout = Dropout(dropout)
        self.outputs = nn.ModuleList(Tap() for _ in range(depth))
        self.taps = [module for module in self.modules() if isinstance(module, Tap)]

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if self.kind == "bidirectional":
            return self.encode(x, mask), None
        memories: list[Memory] = []
        x = self.dropout(x if self.scale == 1 else x * self.scale)
        if (kernel := self._kernel(x, state, mask)) is not None:
            return run_steps(kernel, x, self._begun(x) if state is None else state, mask)
        for n, layer in enumerate(self.layers):
            cells: Any = layer
            memory: Any = cells[0].start(x) if state is None else state[n]
            hidden, memory = unroll(cells[0], x, memory, mask)
            memories.append(memory)
            x = self.outputs[n](self.dropout(hidden))
        return x, tuple(memories)

    def _kernel(self, x: Tensor, state: State, mask: Tensor | None) -> Layers | RowsOfLayers | None:
        """All layers as one compiled program, for one token of every row; where packed weights make single steps
        quicker anyway, for several."""
        cells: Any = [layer[0] for layer in self.layers]  # type: ignore[index]
        single = x.size(1) == 1 and state is not None and mask is None
        if not (single or (x.size(1) and is_packed(cells[0].of_hidden, rows=len(x)))) or not len(x):
            return None
        memories: Any = state or [[cells[0].bias]]
        if cells[0].gating is None or not x.dtype == memories[0][0].dtype == torch.float32:
            return None
        if self.needs_modules or not x.is_cpu:
            return None
        found: Layers | RowsOfLayers | None = self.program(partial(layers_of, cells), len(x))
        return found

    def _begun(self, x: Tensor) -> State:
        cells: Any = [layer[0] for layer in self.layers]  # type: ignore[index]
        return tuple(cell.start(x) for cell in cells)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Outputs only: right padding cannot affect them, so the state need not be masked."""
        x = self.dropout(x if self.scale == 1 else x * self.scale)
        for layer, output in zip(self.layers, self.outputs, strict=True):
            cells: Any = layer
            hidden, _ = unroll(cells[0], x, cells[0].start(x), None)
            if self.kind == "bidirectional":
                back, _ = unroll(cells[1], reverse(x, mask), cells[1].start(x), None)
                hidden = torch.cat((hidden, reverse(back, mask)), dim=-1)
            x = output(self.dropout(hidden))
        return x

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = self.encode(x, mask)
        last = at_end(hidden, mask)
        if self.kind == "causal":
            return last
        half = self.width // 2
        return torch.cat((last[:, :half], hidden[:, 0, half:]), dim=-1)  # the backward direction ends at the first step

    def stages(self) -> list[nn.Module]:
        return list(self.layers)

    def layer_taps(self) -> list[Tap]:
        return list(self.outputs)  # type: ignore[arg-type]

    def memory_taps(self) -> list[list[Tap]]:
        if self.kind == "bidirectional":
            return []
        return [cells[0].held() for cells in self.layers]  # type: ignore[index]


class RecurrentConfig(ModelConfig):
    """Options shared by all recurrent architectures."""

    inputs: int = Field(0, ge=0, description="size of the input embeddings; 0: min(64, width), or width if tied")
    depth: int = Field(1, ge=1, le=128, description="number of layers")
    bidirectional: bool = Field(False, description="half of the units read backwards; for tasks on whole sequences")

    knobs: ClassVar[tuple[str, ...]] = ("width", "inputs")
    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"depth": 2, "inputs": 5},
        {"depth": 2, "bidirectional": True},
    )
    cell: ClassVar[type[Cell]]

    @model_validator(mode="after")
    def _check_directions(self) -> Self:
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width={self.width} must be even: each direction gets half of it")
        check_tie(self.tie, self.inputs, self.width)
        return self

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        if demand.pairs:
            return tied_pairs(demand)
        if not demand.whole:
            return []
        both = Choice("model.bidirectional", True, "the task reads whole sequences")
        sizes = {"width": 256, "inputs": 100, "dropout": 0.4} if demand.dense else {"width": 128, "dropout": 0.5}
        return [both, *(Choice(f"model.{name}", value, demand.size) for name, value in sizes.items())]

    def build(self) -> Backbone:
        return self.unrolled(self.cell)

    def unrolled(self, cell: Callable[[int, int], Cell]) -> Backbone:
        inputs = self.inputs or (self.width if self.tie else min(64, self.width))
        scale = math.sqrt(inputs) if self.tie else 1.0  # tied embeddings start small, for the output layer
        return Recurrent(cell, inputs, self.width, scale, self.depth, self.dropout, self.bidirectional)


def check_tie(tie: bool, inputs: int, width: int) -> None:
    if tie and inputs not in (0, width):
        raise ValueError(f"inputs={inputs}: with tie=true, embeddings have the width of the output layer; set inputs=0")


def tied_pairs(demand: Demand) -> list[Choice]:
    """For a source and a target: input and output share their weights, so that both learn from every token."""
    settings: Json = {"model.width": 256, "model.dropout": 0.1, "model.tie": True}
    settings |= {"train.optimizer": "adamw", "train.rate": 2e-3}
    return [Choice(path, value, demand.size) for path, value in settings.items()]
