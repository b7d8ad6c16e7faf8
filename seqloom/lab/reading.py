"""How an entry reads the data: entries with one tokenizer share the rows that it makes of the data.

Models that are trained from scratch share a tokenizer fitted to the training set. A model that starts from pretrained
weights brings its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seqloom.core.rows import Json, Rows, Vocabulary
from seqloom.core.task import AnyTask
from seqloom.lab.protocols import MeasuredTask
from seqloom.runs.material import Material
from seqloom.runs.registry import task_config


@dataclass(frozen=True, eq=False)
class Reading:
    task: AnyTask
    vocabulary: Vocabulary
    rows: Mapping[str, Rows]
    length: int  # sequence length at which FLOPs are counted
    epoch_tokens: int  # in one pass over the training set
    bytes: int  # of the training set
    folder: str  # of the vocabulary, inside that of the comparison
    brought: bool = False  # the tokenizer came with pretrained weights, instead of being fitted to the training set

    @classmethod
    def of(
        cls, material: Material, vocabulary: Vocabulary, rows: Mapping[str, Rows], folder: str, brought: bool
    ) -> Reading:
        task, train = material.task(vocabulary), rows["train"]
        length = task_config(material.config).tokens_per_row
        if isinstance(task, MeasuredTask):
            length = task.typical_length(train)
        size = material.parts["train"].bytes
        return cls(task, vocabulary, rows, length, task.epoch_tokens(train), size, folder, brought)

    @property
    def identity(self) -> Json:
        """Of the tokens, where the settings and the data of a run do not determine them."""
        return {"vocabulary": self.vocabulary.hash} if self.brought else {}

    @property
    def bytes_per_token(self) -> float:
        return self.bytes / max(1, self.epoch_tokens)
