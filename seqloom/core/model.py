"""ModelConfig: the options of one architecture, and the network it builds for a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field
from torch import nn

from seqloom.core.backbone import Backbone
from seqloom.core.choice import Choice, Demand
from seqloom.core.config import Strict
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask

# With few labels and a large vocabulary, rare words get few updates, so a large random initialisation drowns out what
# they learn (TREC accuracy, same BiLSTM: 85 to 87 % with std 0.03 to 0.1, 76 % with 1). Characters get many updates and
# learn faster from a large initialisation (names by character, 200 steps: 40 % with std 1, 25 % with 0.05).
_LARGE_VOCABULARY, _SMALL_STD = 1000, 0.05


class ModelConfig(Strict):
    """The options of one architecture; each file in models/ has one subclass, named Config."""

    width: int = Field(128, ge=1, description="size of every hidden vector")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout probability on hidden values during training")
    tie: bool = Field(False, description="share the weights of the input embedding and the output layer")

    largest: ClassVar[int] = 2**22
    defaults: ClassVar[Json] = {}  # default settings for this architecture: {"task.length": 64, ...}
    knobs: ClassVar[tuple[str, ...]] = ("width",)  # options adjusted to reach a parameter count, coarsest first
    tables: ClassVar[float | None] = None  # standard deviation of embedding initialisation; None: torch's default, 1
    variants: ClassVar[tuple[Json, ...]] = ({},)  # extra settings covered by the contract tests
    replaces: ClassVar[Mapping[str, Json]] = {}  # naive baselines that this model is, and with which options

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        """Settings that suit what a task asks for; empty: the defaults."""
        return []

    @property
    def bare_outputs(self) -> bool:
        """Whether the output layer over a vocabulary has no bias."""
        return False

    def build(self) -> Backbone:
        raise NotImplementedError

    def reading(self, length: int) -> Self:
        """The same architecture, configured for sequences of this length."""
        return self

    def assemble(self, task: AnyTask) -> SequenceModel:
        """Build the complete network for a task; raises if the task does not support this kind of model."""
        backbone = self.build()
        task.check_kind(backbone.kind)
        if task.encodes:
            backbone.only_encode()
        embed, head = task.embed(backbone.inputs or self.width), task.head(self.width)
        if self.bare_outputs and task.ties:
            head.register_parameter("bias", None)
        network = Network(embed, backbone, head, self.tie and task.ties)
        embeddings = [part for part in network.modules() if isinstance(part, nn.Embedding)]
        large = max((len(embedding.weight) for embedding in embeddings), default=0) > _LARGE_VOCABULARY
        if std := self.tables or (_SMALL_STD if task.encodes and large else None):
            for embedding in embeddings:
                nn.init.normal_(embedding.weight, std=std)
        return network
