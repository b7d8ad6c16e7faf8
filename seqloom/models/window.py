"""Window: an autoregressive model of the last `span` vectors, an MLP (Bengio et al. 2003) or one linear layer.

A linear layer from numbers to numbers needs no gradient descent: least squares gives the optimum in closed form.

state = the last span-1 input vectors (B, span-1, inputs), zeros before the beginning
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, matrix_flops
from seqloom.core.batch import Batch
from seqloom.core.choice import Choice, Demand
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State, keep_last
from seqloom.core.taps import Tap
from seqloom.core.task import AnyTask
from seqloom.layers.dropout import Dropout
from seqloom.layers.least_squares import Moments, make_identity, need_number_sizes
from seqloom.layers.linear import Linear
from seqloom.layers.norms import RMSNorm


class Config(ModelConfig):
    width: int = Field(64, ge=1, description="size of the vectors in the window and of the output")
    inputs: int = Field(0, ge=0, description="size of the vectors in the window; 0: the width")
    span: int = Field(16, ge=1, description="window length in tokens, including the current one")
    form: Literal["mlp", "linear"] = Field("mlp", description="an MLP, or a single linear layer")
    solve: bool = Field(False, description="form=linear on numbers: fit by least squares; the task sets the sizes")
    ridge: float = Field(0.0, ge=0, description="solve: L2 penalty relative to the mean squared error")
    hidden: int = Field(512, ge=1, description="hidden layer size (mlp)")
    depth: int = Field(2, ge=1, le=128, description="hidden layers (mlp), residual after the first")

    knobs: ClassVar[tuple[str, ...]] = ("hidden", "width")
    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"form": "linear"},
        {"span": 1, "depth": 1},
        {"form": "linear", "inputs": 3},
        {"inputs": 5},
    )

    @model_validator(mode="after")
    def _check(self) -> Config:
        if self.solve and self.form != "linear":
            raise ValueError("solve=true requires form=linear")
        return self

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        """All of the history, number by number."""
        if not demand.length:
            return []
        reason = f"the history of a forecast has {demand.length:,} points"
        settings: Json = {"model.span": demand.length, "model.inputs": 1, "model.hidden": 128, "model.dropout": 0.3}
        return [Choice(path, value, reason) for path, value in settings.items()]

    def assemble(self, task: AnyTask) -> SequenceModel:
        if not self.solve:
            return super().assemble(task)
        inputs, outputs = need_number_sizes(task, "model.solve", "use model.solve=false")
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
        # On a CPU, copying the windows for one large product is as fast as a convolution, and faster for a single step.
        windows = read.unfold(1, self.span, 1).transpose(2, 3).flatten(2)  # (B, T, span * inputs), oldest first
        return self.reader(windows), keep_last(read, self.span - 1, mask)

    def flops(self, length: int) -> float:
        averaging: float = getattr(self.reader, "averaging", 0.0)
        return matrix_flops(self) + averaging

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Computes only the last window of each row."""
        read = torch.cat([x.new_zeros(x.size(0), self.span, x.size(-1)), x], dim=1)
        return self.reader(keep_last(read, self.span, mask).flatten(1))


Weigh = Callable[[Tensor, Tensor], Tensor]


@runtime_checkable
class SolvedTask(Protocol):
    """What solving requires of a task: every example once, as inputs and targets (NaN: missing)."""

    def lessons(self, rows: Any) -> Iterator[Batch]: ...


class SolvedWindow(Network):
    """A linear window whose inputs and outputs are the task's numbers: embedding and head are identities."""

    descends = False

    def __init__(self, embed: nn.Module, backbone: Backbone, head: nn.Module, ridge: float) -> None:
        super().__init__(embed, backbone, head)
        self.ridge = ridge
        for part in (embed, head):
            make_identity(part)

    def learn(self, task: object, rows: object) -> int:
        if not isinstance(task, SolvedTask):
            raise UserError("model.solve: this task has no numeric examples for least squares; use model.solve=false")
        moments = self.moments(task.lessons(rows))
        return self.accept(moments, self.ridge)

    @torch.no_grad()
    def moments(self, lessons: Iterable[Batch], weigh: Weigh | None = None) -> Moments:
        """Sums over all examples; those with a missing target are skipped. `weigh`: from inputs and targets of the
        linear layer to the weight of each example."""
        backbone: Any = self.backbone
        reader, span = backbone.reader, backbone.span
        found = Moments(reader.in_features, reader.out_features)
        for lesson in lessons:
            inputs, mask, targets = lesson.inputs, lesson.mask, lesson.targets
            read = torch.cat([inputs.new_zeros(inputs.size(0), span, inputs.size(-1)), inputs], dim=1)
            x, y = self.features(keep_last(read, span, mask).flatten(1)), targets.flatten(1)
            found.add(x, y, None if weigh is None else weigh(x, y))
        return found

    def features(self, windows: Tensor) -> Tensor:
        """What the linear layer reads of windows (n, span * inputs)."""
        return windows

    @torch.no_grad()
    def accept(self, moments: Moments, ridge: float) -> int:
        """Take over the solution; returns the number of examples."""
        if not moments.count:
            raise UserError("model.solve: every training example has a missing target; use model.solve=false")
        backbone: Any = self.backbone
        solution = moments.solve(ridge)
        backbone.reader.weight.copy_(solution[:-1].T)
        backbone.reader.bias.copy_(solution[-1])
        return moments.count


class Perceptron(nn.Module):
    """Hidden layers over a window; their output is added to the newest vector."""

    def __init__(self, span: int, inputs: int, width: int, hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.inputs = inputs
        self.newest = Linear(inputs, width) if inputs != width else nn.Identity()
        self.first = Linear(span * inputs, hidden)
        self.hidden = nn.ModuleList(Hidden(hidden, dropout) for _ in range(depth))
        self.maps = nn.ModuleList(Linear(hidden, hidden) for _ in range(depth - 1))
        self.last = Linear(hidden, width)
        self.norm = RMSNorm(width)
        for layer in (*self.maps, self.last):  # residual branches start at zero: initially only the newest vector
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.first.bias)  # else it would dominate small embeddings after the norm
        self._decay_with_distance(span)

    def forward(self, windows: Tensor) -> Tensor:
        h = self.first(windows)
        for hidden, layer in zip(self.hidden, self.maps, strict=False):
            h = h + layer(hidden(h))
        return self.norm(self.newest(windows[..., -self.inputs :]) + self.last(self.hidden[-1](h)))

    @torch.no_grad()
    def _decay_with_distance(self, span: int) -> None:
        """Scale the initial weights by 1/distance, since recent tokens are the most informative."""
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
