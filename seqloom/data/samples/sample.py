"""Sample: a built-in set of data that needs no download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

Kind = Literal["text", "pairs", "labelled", "frames", "tagged", "questions", "series"]
NAMES: dict[Kind, str] = {
    "text": "a text",
    "pairs": "pairs of texts",
    "labelled": "rows with labels",
    "frames": "measurements with labels",
    "tagged": "words with tags",
    "questions": "questions on passages",
    "series": "numeric series",
}


class Sample(NamedTuple):
    kind: Kind
    what: str
    read: Callable[[], Iterator[Any]]  # a text: pieces of it; else rows: (source, target), (text, label), ...
