"""Answers in a passage: from rows to model inputs, and from predicted tokens back to characters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Json, Row


class Found(NamedTuple):
    """A predicted answer: its score, and its first and last token in the passage."""

    score: float
    first: int
    last: int


class Given(NamedTuple):
    """A question to predict, whose answer is not known; the fields are those of `Asked`."""

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


def asked(row: Row) -> Row:
    """A row from a file as it is; of a question on its own, the same fields."""
    if "question" in row:
        return row
    if not (passage := row.get("passage")) or not passage.strip():
        raise UserError('a question needs its passage: give --passage TEXT, or --data with "question" and "context"')
    return {"line": row["line"], "question": row["source"], "context": passage}


def text_of(one: Any, found: Found) -> str:
    """The text from the start of the first token to the end of the last; `one` has `context` and `places`."""
    result: str = one.context[one.places[found.first, 0] : one.places[found.last, 1]]
    return result


def answer_tokens(one: Any, text: str) -> tuple[int, int]:
    """The first and last token of an answer, where it first stands in the passage."""
    start = one.context.find(text) if text.strip() else -1
    if start < 0:
        raise UserError(f"--target {text!r}: the passage does not contain it; copy it from there")
    inside = [n for n, (a, b) in enumerate(one.places.tolist()) if a < start + len(text) and b > start]
    return inside[0], inside[-1]


def as_json(one: Any, found: Found) -> Json:
    start, end = int(one.places[found.first, 0]), int(one.places[found.last, 1])
    return {"answer": text_of(one, found), "start": start, "end": end, "score": found.score}
