"""ModelConfig: the options of one architecture, and the network it makes for a task."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field
from torch import nn

from seqloom.core.backbone import Backbone
from seqloom.core.config import Strict
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask

# With few labels and many words, a rare word is seen only a few times: an embedding that starts small is soon what it
# learned, not its random start (TREC, the same BiLSTM: 85 to 87 % from 0.03 to 0.1, 76 % from 1). Characters are seen
# often, and embeddings that start large learn sooner (names by character, 200 steps: 40 % from 1, 25 % from 0.05).
_MANY, _SMALL = 1000, 0.05


class ModelConfig(Strict):
    """The options of one architecture; each file in models/ has one subclass, named Config."""

    width: int = Field(128, ge=1, description="size of every hidden vector")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of hidden values dropped in training")
    tie: bool = Field(False, description="one table for reading and writing tokens")

    defaults: ClassVar[Json] = {}  # other settings that suit this architecture: {"task.length": 64, ...}
    knobs: ClassVar[tuple[str, ...]] = ("width",)  # options that are turned to reach a size, the coarse one first
    tables: ClassVar[float | None] = None  # standard deviation of new embeddings; None: torch's default, 1
    variants: ClassVar[tuple[Json, ...]] = ({},)  # further settings that the contract tests try

    def build(self) -> Backbone:
        raise NotImplementedError

    def reading(self, length: int) -> Self:
        """The same architecture, made for sequences of this length."""
        return self

    def assemble(self, task: AnyTask) -> SequenceModel:
        """The whole network for a task; refuses a kind of model the task cannot use."""
        backbone = self.build()
        task.check_kind(backbone.kind)
        if task.encodes:
            backbone.only_encode()
        network = Network(
            task.embed(backbone.inputs or self.width), backbone, task.head(self.width), self.tie and task.ties
        )
        tables = [part for part in network.modules() if isinstance(part, nn.Embedding)]
        many = max((len(table.weight) for table in tables), default=0) > _MANY
        if spread := self.tables or (_SMALL if task.encodes and many else None):
            for table in tables:
                nn.init.normal_(table.weight, std=spread)
        return network
