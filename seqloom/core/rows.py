"""The interface between data and tasks: parts, rows and vocabularies. Nothing here imports torch.

A *part* (train, valid, test) is data as opened; a *vocabulary* turns it into *rows* that a model can be trained on.
Each shape of data (data/shapes) has its own classes for all three; these protocols are what they have in common.
"""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]  # a JSON object
Row = Json  # one input row, or one prediction
Facts = Json  # statistics of the training set, for the naive baselines


class Part(Protocol):
    """A part of the data, identified by its content."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def hash(self) -> str: ...


class Rows(Protocol):
    """Training or evaluation examples."""

    def __len__(self) -> int: ...
    @property
    def tokens(self) -> int: ...


class Vocabulary(Protocol):
    """What is fitted to the training set before training starts: a tokenizer, labels, a scale."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def hash(self) -> str: ...
    def files(self) -> dict[str, bytes]: ...
