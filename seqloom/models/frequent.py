"""The most frequent tag of each token: a tagger that looks at no neighbours, trained by counting.

    p(tag | token) = (c(token, tag) + p(tag)) / (c(token) + 1),    p(tag) = (c(tag) + 1) / (tokens + tags)

A token that training never saw gets the frequencies of all tags. The weight of p(tag), one occurrence, can turn no
count around: it decides only between tags that are equally frequent.

state = none: every token is tagged by itself
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from pydantic import Field
from torch import Tensor

from seqloom.core.backbone import Backbone, Kind
from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.task import AnyTask
from seqloom.layers.identity import Identity


class Config(ModelConfig):
    width: int = Field(128, ge=1, description="unused: there are no hidden vectors")
    dropout: float = Field(0.0, ge=0, lt=1, description="unused: training is counting")
    tie: bool = Field(False, description="unused: there are no embeddings")

    replaces: ClassVar[Mapping[str, Json]] = {"frequent tag": {}}

    def build(self) -> Backbone:
        return Identity(self.width, FrequentTag.kind)

    def assemble(self, task: AnyTask) -> FrequentTag:
        task.check_kind(FrequentTag.kind)
        if not isinstance(task, TaggedTask):
            raise UserError(f"model frequent: counts the tags of words, which {task.name} has not; use another model")
        return FrequentTag(task.tokens.size, len(task.tags))


class Tokens(Protocol):
    """What is needed of a vocabulary."""

    @property
    def size(self) -> int: ...


@runtime_checkable
class TaggedTask(Protocol):
    """What this model requires of a task: a tag for every word, and every training sentence once."""

    tags: Sequence[str]
    tokens: Tokens

    def examples(self, rows: Any) -> Iterator[Batch]: ...


class FrequentTag(SequenceModel):
    kind: Kind = "bidirectional"
    limit: int | None = None
    descends = False
    table: Tensor

    def __init__(self, vocabulary: int, tags: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.full((vocabulary, tags), 1 / tags).log())  # log-probabilities

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(inputs, mask), None

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return None

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Log-probabilities of the tags, (B, T, tags); of a word with its characters, (B, T, 1 + C), only the word
        counts."""
        ids = inputs[..., 0] if inputs.dim() == 3 else inputs
        return self.table[ids.clamp(max=len(self.table) - 1)]

    def learn(self, task: object, rows: object) -> int:
        assert isinstance(task, TaggedTask)
        counts = torch.zeros(self.table.numel(), dtype=torch.float64)
        for batch in task.examples(rows):
            ids = batch.inputs[..., 0] if batch.inputs.dim() == 3 else batch.inputs
            tagged = batch.targets != IGNORE
            cells = ids[tagged] * self.table.size(1) + batch.targets[tagged]
            counts += torch.bincount(cells, minlength=counts.numel())
        counts = counts.view_as(self.table)
        every = counts.sum(0)
        prior = (every + 1) / (every.sum() + len(every))
        self.table.copy_(((counts + prior) / (counts.sum(1, keepdim=True) + 1)).log())
        return int(every.sum())
