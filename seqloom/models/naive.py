"""Naive forecasts as a model: the last value, the value one season ago, a line, or an average; nothing to train.

last       the most recent value
seasonal   the value one season earlier
drift      the line from the first to the last value of the context, extrapolated (Hyndman & Athanasopoulos 2021, 5.2)
average    the mean of the last season, or of the last ten values where there is no season
auto       the one with the smallest mean absolute error on the training set

There is no state: the whole history is needed at once. A missing value is replaced by the one before it.
Sizes: B rows, T steps, N values at each step, H steps of the forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.core.task import AnyTask
from seqloom.layers.least_squares import make_identity, need_number_sizes

RULES = ("last", "seasonal", "drift", "average")
_AVERAGED = 10  # values, where there is no season

Rule = Literal["auto", "last", "seasonal", "drift", "average"]


class Config(ModelConfig):
    rule: Rule = Field("auto", description="the forecast; auto: the best one on the training set")
    season: int = Field(0, ge=0, description="points per season; 0: that of the data")
    width: int = Field(128, ge=1, description="unused: the values themselves are read")
    dropout: float = Field(0.0, ge=0, lt=1, description="unused: there is nothing to train")
    tie: bool = Field(False, description="unused: there are no embeddings")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"rule": "seasonal", "season": 3},
        {"rule": "drift"},
        {"rule": "average", "season": 2},
    )
    replaces: ClassVar[Mapping[str, Json]] = {
        "last value": {"rule": "last"},
        "seasonal naive": {"rule": "seasonal"},
        "drift": {"rule": "drift"},
        "moving average": {"rule": "average"},
    }

    def build(self) -> Backbone:
        return Naive(self.width, False, 1, self._rule(), self.season or 1)

    def assemble(self, task: AnyTask) -> SequenceModel:
        task.check_kind(Naive.kind)
        if not isinstance(task, SeriesTask) or not task.solvable:
            raise UserError("model naive: makes point forecasts of series, from all of the history; use another model")
        inputs, outputs = need_number_sizes(task, "model naive", "use another model")
        seasons = [self.season] if self.season else list(task.seasons)
        usual = seasons[0] if seasons else 1
        if self.rule == "seasonal" and not 1 < usual <= task.reads:
            raise UserError(
                f"model.rule=seasonal: a season of {usual} does not fit a context of {task.reads}; set model.season "
                "and task.context"
            )
        layout = task.layout
        backbone = Naive(layout.targets, layout.flags, layout.block, self._rule(), max(1, min(usual, task.reads)))
        seasons = [season for season in seasons if 1 < season <= task.reads]
        return NaiveModel(task.embed(inputs), backbone, task.head(outputs), seasons, self.rule == "auto")

    def _rule(self) -> int:
        return 0 if self.rule == "auto" else RULES.index(self.rule)


class Columns(Protocol):
    """Inputs of a step: the values, then (if `flags`) for each whether it is present; `block`: steps to forecast."""

    @property
    def targets(self) -> int: ...
    @property
    def flags(self) -> bool: ...
    @property
    def block(self) -> int: ...


@runtime_checkable
class SeriesTask(Protocol):
    """What naive forecasts require of a task."""

    layout: Columns
    seasons: Sequence[int]  # points per season, the main one first; empty: none
    reads: int  # steps of the history
    solvable: bool  # one number is predicted for each target

    def lessons(self, rows: Any) -> Iterator[Batch]: ...


class Naive(Backbone):
    """(B, T, inputs) -> (B, H * N), the same at every position."""

    kind = "bidirectional"
    chosen: Tensor

    def __init__(self, targets: int, flags: bool, steps: int, rule: int, season: int) -> None:
        super().__init__()
        self.targets, self.flags, self.steps = targets, flags, steps
        self.width = steps * targets
        self.history = Tap()
        self.register_buffer("chosen", torch.tensor([rule, season]))

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.final(x, mask)[:, None].expand(-1, x.size(1), -1)

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(x, mask), None

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        values, there = self._values(x, mask)
        sizes = x.new_full((len(x),), x.size(1), dtype=torch.long) if mask is None else mask.sum(1).clamp(min=1)
        rule, season = self.chosen.tolist()
        ends = (sizes - 1)[:, None]  # (B, 1)
        ahead = torch.arange(self.steps, device=x.device)
        last = _at(values, ends)  # (B, 1, N)
        if RULES[rule] == "seasonal":
            back = ends - season + 1 + ahead % season  # (B, H); in a shorter history, the last value
            found = _at(values, torch.where(back >= 0, back, ends))
        elif RULES[rule] == "drift":
            first = there.int().argmax(1, keepdim=True)  # (B, 1, N): the first value present
            slope = (last - values.gather(1, first)) / (ends[..., None] - first).clamp(min=1)
            found = last + slope * (ahead[:, None] + 1)
        elif RULES[rule] == "average":
            near = torch.arange(x.size(1), device=x.device) > ends - (season if season > 1 else _AVERAGED)
            taken = there & near[..., None]
            mean = torch.where(taken, values, 0.0).sum(1, keepdim=True) / taken.sum(1, keepdim=True).clamp(min=1)
            found = torch.where(taken.any(1, keepdim=True), mean, last)
        else:
            found = last
        return found.expand(-1, self.steps, -1).flatten(1)

    def _values(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The values (B, T, N), filled forward, and where they are present; those before the first are 0, as read."""
        values = x[..., : self.targets]
        there = torch.ones_like(values, dtype=torch.bool)
        if self.flags:
            there = x[..., self.targets : 2 * self.targets] > 0.5
        if mask is not None:
            there = there & mask[..., None]
        steps = torch.arange(x.size(1), device=x.device)[:, None]
        places = torch.where(there, steps, 0).cummax(1).values
        return self.history(values.gather(1, places)), there


class NaiveModel(Network):
    """Embedding and head are identities."""

    descends = False

    def __init__(
        self, embed: nn.Module, backbone: Naive, head: nn.Module, seasons: Sequence[int], chooses: bool
    ) -> None:
        super().__init__(embed, backbone, head)
        self.seasons, self.chooses = list(seasons), chooses
        for part in (embed, head):
            make_identity(part)

    @torch.no_grad()
    def learn(self, task: object, rows: object) -> int:
        assert isinstance(task, SeriesTask)
        if not self.chooses:
            return 0
        backbone: Any = self.backbone
        usual = self.seasons[0] if self.seasons else 1
        tried = [(RULES.index(rule), usual) for rule in RULES if rule != "seasonal"]
        tried += [(RULES.index("seasonal"), season) for season in self.seasons]
        errors, count = [0.0] * len(tried), 0
        for lesson in task.lessons(rows):
            targets = lesson.targets.flatten(1)
            count += len(targets)
            for n, choice in enumerate(tried):
                backbone.chosen.copy_(torch.tensor(choice))
                errors[n] += float((backbone.final(lesson.inputs, lesson.mask) - targets).abs().nansum())
        backbone.chosen.copy_(torch.tensor(tried[min(range(len(tried)), key=errors.__getitem__)]))
        return count


def _at(values: Tensor, places: Tensor) -> Tensor:
    """(B, T, N) at the places (B, H) of each row: (B, H, N)"""
    return values.gather(1, places[..., None].expand(-1, -1, values.size(-1)))
