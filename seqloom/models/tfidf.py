"""TF-IDF of n-grams and logistic regression: a classifier that ignores all order beyond neighbouring tokens.

A row is a sparse vector with one entry per distinct n-gram, weighted by its frequency in the row and its rarity among
the training rows (Salton & Buckley 1988); logistic regression maps it to the labels. scikit-learn fits it in seconds.

state = none: it reads a row as a whole
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from seqloom.core.backbone import Backbone, Kind
from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.task import AnyTask
from seqloom.layers.identity import Identity
from seqloom.layers.logistic import fit_logistic
from seqloom.layers.ngrams import Growing, TfIdf, Vectors

ORDERS = {"words": 2, "bpe": 2, "characters": 3, "bytes": 4}  # about the length of a word, or of two


class Config(ModelConfig):
    order: int = Field(0, ge=0, le=8, description="longest n-gram, in tokens; 0: 2 of words and bpe, 3 of characters")
    features: int = Field(
        300_000, ge=1, le=10**8, description="most n-grams that have a weight, the most frequent first"
    )
    balanced: bool = Field(False, description="rows of rare labels weigh more, so that all labels weigh the same")
    width: int = Field(128, ge=1, description="unused: there are no hidden vectors")
    dropout: float = Field(0.0, ge=0, lt=1, description="unused: the penalty is chosen by cross-validation")
    tie: bool = Field(False, description="unused: there are no embeddings")

    defaults: ClassVar[Json] = {"task.longest": 4096}  # a long row costs no more than its tokens
    variants: ClassVar[tuple[Json, ...]] = ({}, {"order": 1})
    replaces: ClassVar[Mapping[str, Json]] = {"tf-idf": {}}

    def build(self) -> Backbone:
        return Identity(self.width, TfIdfClassifier.kind)

    def assemble(self, task: AnyTask) -> TfIdfClassifier:
        task.check_kind(TfIdfClassifier.kind)
        if not isinstance(task, LabelledTask) or task.tokenizer is None:
            raise UserError(
                f"model tfidf: assigns labels to texts, which {task.name} does not do with this data; use another model"
            )
        order = self.order or ORDERS.get(task.tokenizer.kind, 2)
        return TfIdfClassifier(task.tokenizer.size, len(task.labels), order, self.features, self.balanced)


class Tokens(Protocol):
    """What is needed of a tokenizer."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...


@runtime_checkable
class LabelledTask(Protocol):
    """What this model requires of a task: texts with labels, every training row once."""

    labels: Sequence[str]
    tokenizer: Tokens | None  # None: the rows are not texts

    def examples(self, rows: Any) -> Iterator[Batch]: ...


class TfIdfClassifier(Growing, SequenceModel):
    kind: Kind = "bidirectional"
    limit: int | None = None
    descends = False
    grows = True
    weight: Tensor
    bias: Tensor
    strength: Tensor

    def __init__(self, vocabulary: int, labels: int, order: int, most: int, balanced: bool = False) -> None:
        super().__init__()
        self.features, self.balanced = TfIdf(vocabulary, order, most=most), balanced
        self.register_buffer("weight", torch.zeros(1, labels))
        self.register_buffer("bias", torch.zeros(labels))
        self.register_buffer("strength", torch.zeros(()))  # the inverse of the penalty, for the record

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(inputs, mask), None

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return None

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The logits of each row, (B, T) -> (B, labels)."""
        vectors: Vectors = self.features(inputs, mask)
        return vectors.times(self.weight) + self.bias

    def learn(self, task: object, rows: object) -> int:
        from scipy import sparse

        assert isinstance(task, LabelledTask)
        self.features.count((batch.inputs, batch.mask) for batch in task.examples(rows))
        read: list[Vectors] = []
        targets, tokens = [], 0
        for batch in task.examples(rows):
            read.append(self.features(batch.inputs, batch.mask))
            targets.append(batch.targets.numpy())
            tokens += batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())
        bounds = np.concatenate([[0], *(vectors.bounds.diff().numpy() for vectors in read)]).cumsum()
        columns, values = (torch.cat([vectors[n] for vectors in read]).numpy() for n in (1, 2))
        shape = len(bounds) - 1, max(1, len(self.features))
        matrix = sparse.csr_matrix((values.astype(np.float64), columns, bounds), shape=shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the last digits have not converged
            found = fit_logistic(matrix, np.concatenate(targets), len(self.bias), self.balanced)
        for name, value in found._asdict().items():
            self.set(name, np.asarray(value))
        return tokens
