"""The seam between data and tasks: what is read, as parts, rows and vocabularies. Nothing here loads torch.

A *part* (train, valid, test) is data as it was opened; with a *vocabulary* it becomes *rows* that a model can learn
from. Each shape of data (data/shapes) has its own classes of the three; these protocols are what they have in common.
"""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]  # an object as JSON has it
Row = Json  # one row to predict from, or one prediction
Facts = Json  # what the naive baselines remember of the training part


class Part(Protocol):
    """A part of the data, identified by its content."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def hash(self) -> str: ...


class Rows(Protocol):
    """Examples to learn from."""

    def __len__(self) -> int: ...
    @property
    def tokens(self) -> int: ...


class Vocabulary(Protocol):
    """What is fitted to the training part before any training: a tokenizer, labels, a scale."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def hash(self) -> str: ...
    def files(self) -> dict[str, bytes]: ...
