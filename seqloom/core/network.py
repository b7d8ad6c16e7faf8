"""Network = embed -> backbone -> head: the backbone's three verbs, on inputs and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, Kind, matrix_flops
from seqloom.core.errors import UserError
from seqloom.core.state import State

M = TypeVar("M", bound=nn.Module)


class Summary(nn.Module, ABC):
    """A head that answers once for a whole sequence, and so must know which positions are real."""

    @abstractmethod
    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor: ...


class SequenceModel(nn.Module, ABC):
    """What tasks, training and decoding know of a model: the three verbs, its kind and its limit."""

    kind: Kind
    limit: int | None
    reach: int | None = None  # most tokens it can read at all; None: no end
    descends: ClassVar[bool] = True  # it learns by gradient descent; False: `learn` does it all at once
    grows: ClassVar[bool] = False  # its buffers are as large as what it has seen, so saved ones may differ in shape

    @abstractmethod
    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Predictions for every position, continuing from a state."""

    @abstractmethod
    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions after seeing the sequence whole: for every position, or one for all of it."""

    @abstractmethod
    def begin(self, context: Tensor, mask: Tensor | None = None) -> State: ...

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The vectors behind the predictions of `encode`, (B, T, width); `answer` turns them into predictions."""
        raise NotImplementedError

    def answer(self, hidden: Tensor) -> Tensor:
        """Predictions from vectors that `represent` gave."""
        raise NotImplementedError

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The prediction after the last real position alone, (B, ...)."""
        raise NotImplementedError

    def learn(self, task: object, rows: object) -> int | None:
        """Learn from all rows at once, by counting or by solving equations: how many examples there were.

        None: this model descends, which is the trainer's work.
        """
        return None

    def part(self, kind: type[M]) -> M | None:
        """The part of this class, for a task that put one into its head; None: there is none."""
        return next((module for module in self.modules() if isinstance(module, kind)), None)

    def flops(self, length: int) -> float:
        """Floating-point operations per token, forward, when sequences of `length` tokens are read."""
        return matrix_flops(self)

    def head_flops(self) -> float:
        """Those of them that only turn a vector into a prediction."""
        return 0.0

    def stages(self) -> list[list[nn.Parameter]]:
        """Its weights from input to output: the embedding, each layer, the head."""
        return [list(self.parameters())]

    @property
    def joins(self) -> bool:
        """Whether it reads a source and what follows it as one sequence, which share its limit."""
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
        found: Tensor = self.head(hidden, mask) if isinstance(self.head, Summary) else self.head(hidden)
        return found

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.backbone.encode(self.embed(inputs), mask)

    def answer(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.head(hidden)
        return found

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.head(self.backbone.final(self.embed(inputs), mask))
        return found

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self.backbone.begin(self.embed(context), mask)

    def flops(self, length: int) -> float:
        return matrix_flops(self.embed) + self.backbone.flops(length) + self.head_flops()

    def head_flops(self) -> float:
        return matrix_flops(self.head)

    def stages(self) -> list[list[nn.Parameter]]:
        """What stands before the first layer belongs to the embedding, what stands after the last to the head."""
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
            raise UserError(
                "model.tie: the embedding and the output layer differ in shape; set model.inputs=0, or model.tie=false"
            )
        if len(read) != len(write):
            raise UserError(
                f"model.tie: {len(read):,} tokens are read and {len(write):,} written; one table needs one vocabulary: "
                "tokenizer.joint=true, or model.tie=false"
            )
        nn.init.normal_(read, std=read.size(-1) ** -0.5)  # small enough for an output layer too
        self.head.weight = read
