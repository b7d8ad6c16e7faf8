"""Linear: one linear map from the last `span` values straight to all steps of a forecast (Zeng et al. 2023).

With `task.window_scale=last` this is NLinear; with `decompose`, DLinear: a moving average of the window and the
remainder have a map each. Their sum is again one linear map of the window, so without a penalty least squares finds the
same forecasts with and without it; it matters for gradient descent, and slightly with a penalty.

Least squares gives the optimum in closed form. The penalty is the one with the least error in cross-validation, over
consecutive stretches of the training set. Where absolute errors count, the equations are solved again with every
example weighted by the inverse of its error (iteratively reweighted least squares). Where inputs or outputs are not
plain numbers, the map is trained by descent.

state = the last span-1 input vectors (B, span-1, inputs), zeros before the beginning
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask
from seqloom.layers.least_squares import best_ridge, make_identity, number_sizes, total
from seqloom.layers.linear import Linear, TiedLinear
from seqloom.models.window import SolvedWindow, Weigh, Window

_SPAN = 16  # where the task does not say how much is read
_FOLDS = 5
_REWEIGHTED = 3  # further turns for absolute errors
_EXACT = 0.3  # an error, in units of the targets, below which weights hardly grow
_LARGE = 3_000  # inputs of the map beyond which cross-validation would take too long
_FIXED = 1e-3  # the penalty there, relative to the mean square of an input


class Config(ModelConfig):
    width: int = Field(64, ge=1, description="size of the vectors, for tokens; numbers are mapped directly")
    span: int = Field(0, ge=0, description="window length, including the current step; 0: the context of the task")
    decompose: int = Field(
        0, ge=0, description="points of the moving average that is split off and mapped separately; 0: not split"
    )
    solve: bool | None = Field(
        None, description="least squares instead of gradient descent; none: for point forecasts of numbers"
    )
    ridge: float | None = Field(
        None,
        ge=0,
        description="least squares: L2 penalty relative to the mean squared error; none: cross-validated",
    )

    knobs: ClassVar[tuple[str, ...]] = ("width", "span")
    variants: ClassVar[tuple[Json, ...]] = ({}, {"span": 5, "decompose": 3}, {"span": 3, "solve": False})

    def build(self) -> Backbone:
        return self._window(self.width, self.width)

    def reading(self, length: int) -> Self:
        return self if self.span else self.model_copy(update={"span": length})

    def assemble(self, task: AnyTask) -> SequenceModel:
        solvable = isinstance(task, StretchedTask) and task.solvable
        if self.solve and not solvable:
            raise UserError("model.solve: least squares fits point forecasts of numbers only; use model.solve=false")
        if (sizes := number_sizes(task)) is None:
            return super().assemble(task)
        backbone = self._window(*sizes)
        task.check_kind(backbone.kind)
        embed, head = task.embed(sizes[0]), task.head(sizes[1])
        if solvable and self.solve is not False:
            return SolvedLinear(embed, backbone, head, self.ridge)
        for part in (embed, head):
            make_identity(part)
        return Network(embed, backbone, head)

    def _window(self, inputs: int, outputs: int) -> Window:
        span = self.span or _SPAN
        reader: nn.Module = Linear(span * inputs, outputs)
        if self.decompose:
            reader = Decomposed(span, inputs, outputs, self.decompose)
        return Window(inputs, outputs, span, reader)


class Decomposed(Linear):
    """A linear layer on the moving average of a window (its ends repeated, as in the paper) and on the remainder."""

    average: Tensor

    def __init__(self, span: int, inputs: int, outputs: int, points: int) -> None:
        super().__init__(2 * span * inputs, outputs)
        self.inputs = inputs
        self.map = TiedLinear(self, "weight", "bias")
        places = torch.arange(span)[:, None] + torch.arange(points) - (points - 1) // 2
        average = torch.zeros(span, span).scatter_add_(
            1, places.clamp(0, span - 1), torch.full((span, points), 1 / points)
        )
        self.register_buffer("average", average, persistent=False)
        self.averaging = 2.0 * span * span * inputs  # operations per step

    def forward(self, x: Tensor) -> Tensor:
        return self.map(self.features(x))

    def features(self, windows: Tensor) -> Tensor:
        """(..., span * inputs) -> (..., 2 * span * inputs)"""
        whole = windows.unflatten(-1, (-1, self.inputs))
        trend = self.average.to(whole.dtype) @ whole  # (..., span, inputs)
        return torch.cat((trend, whole - trend), dim=-2).flatten(-2)


@runtime_checkable
class StretchedTask(Protocol):
    """What choosing the penalty requires of a task: its examples, also those of one stretch of time in so many."""

    solvable: bool  # one number is predicted for each target
    absolute: bool  # absolute errors count, not squares

    def lessons(self, rows: Any, stretch: tuple[int, int] = (0, 1)) -> Iterator[Batch]: ...


class SolvedLinear(SolvedWindow):
    def __init__(self, embed: nn.Module, backbone: Backbone, head: nn.Module, ridge: float | None) -> None:
        super().__init__(embed, backbone, head, ridge or 0.0)
        self.chooses = ridge is None

    def features(self, windows: Tensor) -> Tensor:
        reader: Any = self.backbone.reader
        found: Tensor = reader.features(windows) if isinstance(reader, Decomposed) else windows
        return found

    def learn(self, task: object, rows: object) -> int:
        assert isinstance(task, StretchedTask)
        for turn in range(1 + _REWEIGHTED * task.absolute):
            count = self._solve(task, rows, self._weigh if turn else None)
        return count

    def _solve(self, task: StretchedTask, rows: object, weigh: Weigh | None) -> int:
        reader: Any = self.backbone.reader
        folds = _FOLDS if self.chooses and reader.in_features <= _LARGE else 1
        parts = [self.moments(task.lessons(rows, (n, folds)), weigh) for n in range(folds)]
        whole = total(parts)
        ridge = best_ridge(parts) if folds > 1 else _FIXED * whole.input_square
        return self.accept(whole, ridge if self.chooses else self.ridge)

    def _weigh(self, x: Tensor, y: Tensor) -> Tensor:
        """The inverse of the error so far, up to a bound: then squares count as absolute values do."""
        reader: Any = self.backbone.reader
        errors = (nn.functional.linear(x, reader.weight, reader.bias) - y).abs().mean(1)
        return 1 / (errors + _EXACT)
