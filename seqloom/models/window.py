"""Window: an autoregressive model of the last `span` vectors, a perceptron (Bengio et al. 2003) or one linear map.

The linear map of numbers to numbers need not be learned step by step: least squares gives the best one at once.

state = the last span-1 input vectors (B, span-1, inputs), zeros before the beginning
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone
from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network, SequenceModel
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.core.task import AnyTask
from seqloom.layers.dropout import Dropout
from seqloom.layers.linear import Linear
from seqloom.layers.norms import RMSNorm


class Config(ModelConfig):
    width: int = Field(64, ge=1, description="size of every vector in the window, and of what leaves")
    inputs: int = Field(0, ge=0, description="size of the vectors in the window, if it is another; 0: the width")
    span: int = Field(16, ge=1, description="tokens looked at: the current one and those just before it")
    form: Literal["mlp", "linear"] = Field("mlp", description="mlp, or one linear map of the window and nothing else")
    solve: bool = Field(False, description="linear, of numbers: by least squares at once, as wide as the task needs")
    ridge: float = Field(0.0, ge=0, description="solve: pull of the weights towards zero, per example")
    hidden: int = Field(512, ge=1, description="size of the hidden layers (mlp)")
    depth: int = Field(2, ge=1, description="hidden layers (mlp); each after the first adds to the one before")

    knobs: ClassVar[tuple[str, ...]] = ("hidden", "width")
    variants: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"form": "linear"},
        {"span": 1, "depth": 1},
        {"form": "linear", "inputs": 3},
        {"inputs": 5},
    )

    @model_validator(mode="after")
    def _check(self) -> Config:
        if self.solve and self.form != "linear":
            raise ValueError("solve=true belongs to form=linear")
        return self

    def assemble(self, task: AnyTask) -> SequenceModel:
        if not self.solve:
            return super().assemble(task)
        inputs, outputs = _sizes(task)
        backbone = self.model_copy(update={"inputs": inputs, "width": outputs}).build()
        task.check_kind(backbone.kind)
        return SolvedWindow(task.embed(inputs), backbone, task.head(outputs), self.ridge)

    def build(self) -> Backbone:
        reader: nn.Module
        inputs = self.inputs or self.width
        if self.form == "linear":
            reader = Linear(self.span * inputs, self.width)
        else:
            reader = Perceptron(self.span, inputs, self.width, self.hidden, self.depth, self.dropout)
        return Window(inputs, self.width, self.span, reader)


class Window(Backbone):
    def __init__(self, inputs: int, width: int, span: int, reader: nn.Module) -> None:
        super().__init__()
        self.inputs, self.width, self.span, self.reader = inputs, width, span, reader

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if state is None:
            state = x.new_zeros(x.size(0), self.span - 1, x.size(-1))
        assert isinstance(state, Tensor)
        if not x.size(1):  # no window to unfold
            return x.new_zeros(x.size(0), 0, self.width), state
        read = torch.cat([state, x], dim=1)  # (B, span-1+T, inputs)
        # On a CPU, copying the windows for one large product costs what a convolution does, and less for a single step.
        windows = read.unfold(1, self.span, 1).transpose(2, 3).flatten(2)  # (B, T, span * inputs), oldest first
        return self.reader(windows), keep_last(read, self.span - 1, mask)

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One window of each row, the last."""
        read = torch.cat([x.new_zeros(x.size(0), self.span, x.size(-1)), x], dim=1)
        return self.reader(keep_last(read, self.span, mask).flatten(1))


@runtime_checkable
class SolvedTask(Protocol):
    """What is asked of a task here: every example once, as inputs and what is wanted after them (NaN: missing)."""

    def lessons(self, rows: Any) -> Iterator[Batch]: ...


class SolvedWindow(Network):
    """What enters and what leaves the window are the numbers of the task themselves."""

    descends = False

    def __init__(self, embed: nn.Module, backbone: Backbone, head: nn.Module, ridge: float) -> None:
        super().__init__(embed, backbone, head)
        self.ridge = ridge
        for part in (embed, head):
            _make_identity(*_linear(part))

    def learn(self, task: object, rows: object) -> int:
        if not isinstance(task, SolvedTask):
            raise UserError("model.solve: this task has no numbers to solve equations from; use model.solve=false")
        return self.solve(task.lessons(rows))

    @torch.no_grad()
    def solve(self, lessons: Iterable[Batch]) -> int:
        """Examples with a missing target are left out."""
        backbone: Any = self.backbone
        reader, span = backbone.reader, backbone.span
        size, count = reader.in_features + 1, 0
        gram, moment = (torch.zeros(size, n, dtype=torch.float64) for n in (size, reader.out_features))
        for lesson in lessons:
            inputs, mask, wanted = lesson.inputs, lesson.mask, lesson.targets
            read = torch.cat([inputs.new_zeros(inputs.size(0), span, inputs.size(-1)), inputs], dim=1)
            there = wanted.flatten(1).isfinite().all(1)
            x = keep_last(read, span, mask).flatten(1)[there].double()
            x = torch.cat((x, x.new_ones(len(x), 1)), dim=1)
            gram.addmm_(x.T, x)
            moment.addmm_(x.T, wanted.flatten(1)[there].double())
            count += len(x)
        if not count:
            raise UserError("model.solve: every training example has something missing; let the model learn by descent")
        gram.diagonal()[:-1].add_(self.ridge * count)
        solution = torch.linalg.lstsq(gram, moment, rcond=1e-12, driver="gelsd").solution
        reader.weight.copy_(solution[:-1].T)
        reader.bias.copy_(solution[-1])
        return count


def _linear(part: nn.Module) -> list[nn.Linear]:
    found = [module for module in part.modules() if isinstance(module, nn.Linear)]
    if len(found) != 1 or any(isinstance(module, nn.Embedding) for module in part.modules()):
        raise UserError("model.solve: solves for numbers, and this task reads or writes something else; solve=false")
    return found


def _sizes(task: AnyTask) -> tuple[int, int]:
    """Numbers that a step of the task has, and numbers that are said of it."""
    (reads,), (writes,) = _linear(task.embed(1)), _linear(task.head(1))
    return reads.in_features, writes.out_features


def _make_identity(linear: nn.Linear) -> None:
    """Nothing to learn: it hands on what it gets."""
    weight, bias = torch.eye(linear.out_features), torch.zeros(linear.out_features)
    del linear.weight, linear.bias
    linear.register_buffer("weight", weight)
    linear.register_buffer("bias", bias)


class Perceptron(nn.Module):
    """Hidden layers over a window; what they find is added to the window's newest vector."""

    def __init__(self, span: int, inputs: int, width: int, hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.inputs = inputs
        self.newest = Linear(inputs, width) if inputs != width else nn.Identity()
        self.first = Linear(span * inputs, hidden)
        self.hidden = nn.ModuleList(Hidden(hidden, dropout) for _ in range(depth))
        self.maps = nn.ModuleList(Linear(hidden, hidden) for _ in range(depth - 1))
        self.last = Linear(hidden, width)
        self.norm = RMSNorm(width)
        for layer in (*self.maps, self.last):  # what adds starts at zero: at first a model of the newest vector alone
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.first.bias)  # else it drowns small embeddings, for the norm after it sees only directions
        self._prefer_near(span)

    def forward(self, windows: Tensor) -> Tensor:
        h = self.first(windows)
        for hidden, layer in zip(self.hidden, self.maps, strict=False):
            h = h + layer(hidden(h))
        return self.norm(self.newest(windows[..., -self.inputs :]) + self.last(self.hidden[-1](h)))

    @torch.no_grad()
    def _prefer_near(self, span: int) -> None:
        """Begin with weights that shrink as 1/distance: the near past says most, and learning starts from there."""
        near = 1 / torch.arange(span, 0, -1)
        near = near / near.square().mean().sqrt()
        self.first.weight.mul_(near.repeat_interleave(self.inputs))


class Hidden(nn.Module):
    """Normalise, then the squared ReLU (So et al. 2021)."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.values, self.drop = RMSNorm(size), Tap(), Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        return self.drop(self.values(F.relu(self.norm(h)).square()))
