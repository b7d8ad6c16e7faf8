"""Network = embed -> backbone -> head: forward, encode and begin, from inputs to predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, Kind, at_end, matrix_flops
from seqloom.core.errors import UserError
from seqloom.core.slots import Slots
from seqloom.core.state import State
from seqloom.core.taps import Tap

M = TypeVar("M", bound=nn.Module)


class Summary(nn.Module, ABC):
    """A head that makes one prediction per sequence, and therefore needs the mask."""

    @abstractmethod
    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor: ...


class SequenceModel(nn.Module, ABC):
    """The model interface for tasks, training and decoding: forward, encode and begin, its kind and its limit."""

    kind: Kind
    limit: int | None
    reach: int | None = None  # longest sequence it can process at all, in tokens; None: any length
    descends: ClassVar[bool] = True  # trained by gradient descent; False: `learn` fits it in one pass
    grows: ClassVar[bool] = False  # buffer shapes depend on the training data, so saved ones may differ
    slots = Slots()  # how rows of its state come and go
    borrowed: frozenset[str] = frozenset()  # names of weights that another run holds: not saved with this model

    @abstractmethod
    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Predictions for every position and the new state, continuing from `state`."""

    @abstractmethod
    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions for a complete sequence: one per position, or one for the whole sequence."""

    @abstractmethod
    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        """Process a context and return the state to continue from."""

    def follow(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """As `forward`, but only what is predicted after each row's last real token, (B, ...)."""
        predictions, state = self(inputs, state, mask)
        return at_end(predictions, mask), state

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The hidden vectors behind the predictions of `encode`, (B, T, width); `answer` applies the head to them."""
        raise NotImplementedError

    def advance(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """As `forward`, but the hidden vectors behind the predictions, for callers that need only some of these."""
        raise NotImplementedError

    def answer(self, hidden: Tensor) -> Tensor:
        """Predictions from the hidden vectors returned by `represent` or `advance`."""
        raise NotImplementedError

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The prediction at the last real position only, (B, ...)."""
        raise NotImplementedError

    def learn(self, task: object, rows: object) -> int | None:
        """Fit to all rows in one pass, by counting or in closed form; returns the number of examples.

        None: this model is trained by gradient descent, in the training loop.
        """
        return None

    def part(self, kind: type[M]) -> M | None:
        """The first submodule of this class, such as a module that a task put into its head; None if there is none."""
        return next((module for module in self.modules() if isinstance(module, kind)), None)

    def flops(self, length: int) -> float:
        """Floating-point operations per token in a forward pass over sequences of `length` tokens."""
        return matrix_flops(self)

    def head_flops(self) -> float:
        """The part of `flops` spent in the output head."""
        return 0.0

    def stages(self) -> list[list[nn.Parameter]]:
        """The weights from input to output: the embedding, each layer, the head."""
        return [list(self.parameters())]

    @property
    def joins(self) -> bool:
        """Whether source and target are read as one sequence and share its limit."""
        return self.kind == "causal"

    @property
    def device(self) -> torch.device:
        return next((t.device for t in chain(self.parameters(), self.buffers())), torch.device("cpu"))


class PartlyTied(nn.Embedding):
    """An embedding whose first rows are also the output layer; the others are only read, such as source tokens."""

    def __init__(self, table: Tensor, tied: int) -> None:
        super().__init__(tied, table.size(1), _weight=table[:tied].clone())
        self.others = nn.Embedding(len(table) - tied, table.size(1), _weight=table[tied:].clone())

    def forward(self, ids: Tensor) -> Tensor:
        tied = ids < self.num_embeddings
        own, other = super().forward(ids * tied), self.others((ids - self.num_embeddings) * ~tied)
        return torch.where(tied[..., None], own, other)


class Network(SequenceModel):
    def __init__(self, embed: nn.Module, backbone: Backbone, head: nn.Module, tie: bool = False) -> None:
        super().__init__()
        self.embed, self.backbone, self.head = embed, backbone, head
        self.embedded = Tap()  # (B, T, inputs): the vectors that the backbone reads
        self.kind, self.limit, self.reach = backbone.kind, backbone.limit, backbone.reach
        self.slots = backbone.slots
        self.summarises = isinstance(head, Summary)
        if tie:
            self._tie()

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        hidden, state = self.advance(inputs, state, mask)
        return self.head(hidden), state

    def advance(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        found: tuple[Tensor, State] = self.backbone(self.embedded(self.embed(inputs)), state, mask)
        return found

    def follow(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        hidden, state = self.advance(inputs, state, mask)
        return self.head(at_end(hidden, mask)), state

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = self.represent(inputs, mask)
        found: Tensor = self.head(hidden, mask) if self.summarises else self.head(hidden)
        return found

    def represent(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.backbone.encode(self.embedded(self.embed(inputs)), mask)

    def answer(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.head(hidden)
        return found

    def final(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.head(self.backbone.final(self.embedded(self.embed(inputs)), mask))
        return found

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self.backbone.begin(self.embedded(self.embed(context)), mask)

    def flops(self, length: int) -> float:
        return matrix_flops(self.embed) + self.backbone.flops(length) + self.head_flops()

    def head_flops(self) -> float:
        return matrix_flops(self.head)

    def stages(self) -> list[list[nn.Parameter]]:
        """Weights before the first layer belong to the embedding, weights after the last one to the head."""
        layers = [list(layer.parameters()) for layer in self.backbone.stages()]
        inside = {p for layer in layers for p in layer}
        before, after = list(self.embed.parameters()), list(self.head.parameters())
        passed = False
        for p in self.backbone.parameters():
            passed = passed or p in inside
            if p not in inside:
                (after if passed else before).append(p)
        tied = set(before)
        return [before, *layers, [p for p in after if p not in tied]]

    def _tie(self) -> None:
        """Share one matrix between the input embedding and the output layer (Press & Wolf 2017); where more tokens are
        read than predicted, those predicted come first."""
        read, write = getattr(self.embed, "weight", None), getattr(self.head, "weight", None)
        if read is None or write is None or read.size(1) != write.size(1):
            raise UserError(
                "model.tie: the embedding and the output layer differ in shape; set model.inputs=0, or model.tie=false"
            )
        nn.init.normal_(read, std=read.size(-1) ** -0.5)  # small enough for the output layer as well
        if len(read) > len(write):
            self.embed = PartlyTied(read.detach(), len(write))
        self.head.weight = self.embed.weight
