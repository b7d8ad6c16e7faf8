"""Network = embed -> backbone -> head: the backbone's three verbs, on inputs and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, Kind, matrix_flops
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.state import State

if TYPE_CHECKING:
    from seqloom.core.task import Task


# Where labels are few and words many, a rare word is seen a few times only: a vector that begins small is soon what it
# was taught, and no longer what it was by chance (TREC, the same BiLSTM: 85 to 87 % from 0.03 to 0.1, 76 % from 1).
# Letters are seen often, and vectors that begin large teach sooner (names by letters, 200 steps: 40 % from 1, 25 % from
# 0.05).
_MANY, _SMALL = 1000, 0.05


class Summary(nn.Module, ABC):
    """A head that answers once for a whole sequence, and so must know which positions are real."""

    @abstractmethod
    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor: ...


class SequenceModel(nn.Module, ABC):
    """What tasks, training and generation know of a model: the three verbs, its kind and its limit."""

    kind: Kind
    limit: int | None
    reach: int | None = None  # most tokens it can read at all; None: no end

    @abstractmethod
    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Predictions for every position, continuing from a state."""

    @abstractmethod
    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions after seeing the sequence whole: for every position, or one for all of it."""

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The vectors behind these predictions, (B, T, width): for who asks of a few positions only."""
        raise NotImplementedError

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The one prediction, (B, ...), when all has been read."""
        raise NotImplementedError

    @abstractmethod
    def begin(self, context: Tensor, mask: Tensor | None = None) -> State: ...

    def flops(self, length: int) -> float:
        """Floating-point operations per token, forward, when sequences of `length` tokens are read."""
        return matrix_flops(self)

    def stages(self) -> list[list[nn.Parameter]]:
        """Its weights from what reads to what answers: the table, each layer, the head."""
        return [list(self.parameters())]

    @property
    def joins(self) -> bool:
        """Whether a source and what is written after it are one sequence to it, and share its limit."""
        return self.kind == "causal"

    @property
    def device(self) -> torch.device:
        return next((t.device for t in (*self.parameters(), *self.buffers())), torch.device("cpu"))


class Network(SequenceModel):
    def __init__(self, embed: nn.Module, backbone: Backbone, head: nn.Module, tie: bool = False) -> None:
        super().__init__()
        self.embed, self.backbone, self.head = embed, backbone, head
        self.kind, self.limit, self.reach = backbone.kind, backbone.limit, backbone.reach
        if tie:
            self._tie()

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        hidden, state = self.backbone(self.embed(inputs), state, mask)
        return self.head(hidden), state

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = self.represent(inputs, mask)
        return self.head(hidden, mask) if isinstance(self.head, Summary) else self.head(hidden)

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.backbone.encode(self.embed(inputs), mask)

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.head(self.backbone.final(self.embed(inputs), mask))

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self.backbone.begin(self.embed(context), mask)

    def flops(self, length: int) -> float:
        return matrix_flops(self.embed) + self.backbone.flops(length) + matrix_flops(self.head)

    def stages(self) -> list[list[nn.Parameter]]:
        """What stands before the first layer belongs to the table, what stands after the last to the head."""
        layers = [list(layer.parameters()) for layer in self.backbone.stages()]
        inside = {p for layer in layers for p in layer}
        before, after = list(self.embed.parameters()), list(self.head.parameters())
        passed = False
        for p in self.backbone.parameters():
            passed = passed or p in inside
            if p not in inside:
                (after if passed else before).append(p)
        table = set(before)
        return [before, *layers, [p for p in after if p not in table]]

    def _tie(self) -> None:
        """One matrix for reading and for writing a token (Press & Wolf 2017)."""
        read, write = getattr(self.embed, "weight", None), getattr(self.head, "weight", None)
        if read is None or write is None or read.size(1) != write.size(1):
            raise UserError("model.tie: the tables for reading and writing differ in shape; model.inputs=0, or no tie")
        if len(read) != len(write):
            raise UserError(
                f"model.tie: {len(read):,} tokens are read and {len(write):,} written; one table needs one vocabulary: "
                "task.joint=true, or model.tie=false"
            )
        nn.init.normal_(read, std=read.size(-1) ** -0.5)  # small enough to write with, not only to read
        self.head.weight = read


class CountingModel(SequenceModel):
    """A model that learns by counting, not by descent: it sees the training data once, then it is done."""

    @abstractmethod
    def observe(self, pieces: Iterable[Tensor]) -> None:
        """Learn from token pieces that follow each other."""


class SolvingModel(SequenceModel):
    """A model that learns by solving equations, not by descent: it sees every example once, then it is done."""

    @abstractmethod
    def solve(self, lessons: Iterable[Lesson]) -> int:
        """Learn from all of them; how many there were."""


Lesson = tuple[
    Tensor, Tensor | None, Tensor
]  # inputs (B, T, F), mask, what is wanted at the end (B, ...), NaN: nothing


class ModelConfig(Strict):
    """The options of one architecture; each file in models/ has one subclass, named Config."""

    width: int = Field(128, ge=1, description="size of every hidden vector")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of hidden values dropped in training")
    tie: bool = Field(False, description="one table for reading and writing tokens")

    defaults: ClassVar[dict[str, Any]] = {}  # what else suits this architecture: {"task.length": 64, ...}
    knobs: ClassVar[tuple[str, ...]] = ("width",)  # what is turned to reach a size: the coarse one first
    tables: ClassVar[float | None] = None  # spread of a new table's values; None: torch's choice, 1
    variants: ClassVar[tuple[dict[str, Any], ...]] = ({},)  # settings that the contract tests also try

    def build(self) -> Backbone:
        raise NotImplementedError

    def reading(self, length: int) -> Self:
        """The same architecture, made for sequences of this length."""
        return self

    def assemble(self, task: Task) -> SequenceModel:
        """The whole network for a task; refuses a kind of model the task cannot use."""
        backbone = self.build()
        task.check(backbone.kind)
        if task.encodes:
            backbone.only_encode()
        network = Network(
            task.embed(backbone.inputs or self.width), backbone, task.head(self.width), self.tie and task.writes
        )
        tables = [part for part in network.modules() if isinstance(part, nn.Embedding)]
        many = max((len(table.weight) for table in tables), default=0) > _MANY
        if spread := self.tables or (_SMALL if task.encodes and many else None):
            for table in tables:
                nn.init.normal_(table.weight, std=spread)
        return network
