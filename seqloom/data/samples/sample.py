"""Sample: a built-in dataset that needs no download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

Kind = Literal["text", "pairs", "labelled", "frames", "tagged", "questions", "series"]
NAMES: dict[Kind, str] = {
    "text": "a text",
    "pairs": "pairs of texts",
    "labelled": "labelled texts",
    "frames": "labelled measurements",
    "tagged": "tagged sentences",
    "questions": "questions about passages",
    "series": "numeric series",
}


class Sample(NamedTuple):
    kind: Kind
    what: str
    read: Callable[[], Iterator[Any]]  # pieces of a text, or rows: (source, target), (text, label), ...
