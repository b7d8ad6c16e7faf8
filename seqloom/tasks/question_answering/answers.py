"""Answers in a passage: from a row to what is read, and from the tokens that were found back to characters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Row


class Found(NamedTuple):
    """An answer: tokens of the passage, from the first to the last."""

    score: float
    first: int
    last: int


class Given(NamedTuple):
    """A question whose answer nobody has given."""

    asked: np.ndarray
    passage: np.ndarray
    places: np.ndarray
    context: str
    spans: tuple[tuple[int, int], ...] = ()
    impossible: bool = False

    @classmethod
    def of(cls, row: Row, tokenizer: Any) -> Given:
        passage, places = tokenizer.spans(row["context"])
        return cls(tokenizer.encode(row["question"]), passage, places, row["context"])


def with_passage(row: Row, passage: str | None) -> Row:
    """A row from a file, or a question alone and its passage beside it."""
    if "question" in row:
        return row
    if not passage or not passage.strip():
        raise UserError('a question needs its passage: give --passage TEXT, or --data with "question" and "context"')
    return {"line": row["line"], "question": row["source"], "context": passage}


def text_of(one: Any, found: Found) -> str:
    """The characters from the first token's beginning to the last one's end; `one`: with `context` and `places`."""
    result: str = one.context[one.places[found.first, 0] : one.places[found.last, 1]]
    return result


def as_json(one: Any, found: Found) -> dict[str, Any]:
    start, end = int(one.places[found.first, 0]), int(one.places[found.last, 1])
    return {"answer": text_of(one, found), "start": start, "end": end, "score": found.score}
