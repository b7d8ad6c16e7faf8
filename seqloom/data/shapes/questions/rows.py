"""Questions and passages as token ids, with the characters each token covers; in memory, each passage once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from seqloom.data.shapes.questions.reading import Question, QuestionSource


class Spans(Protocol):
    """The interface of a tokenizer that is needed here."""

    size: int

    def encode(self, text: str) -> np.ndarray: ...
    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]: ...


class Asked(NamedTuple):
    """One question, as the task reads it."""

    asked: np.ndarray  # token ids of the question
    passage: np.ndarray  # token ids of the passage
    places: np.ndarray  # (passage tokens, 2): the characters they cover
    spans: tuple[tuple[int, int], ...]  # first and last token of each answer found in the passage
    texts: tuple[str, ...]  # all correct answers; empty: unanswerable
    question: str
    context: str
    impossible: bool


class QuestionRows:
    def __init__(self, rows: Iterable[Question], tokenizer: Spans, origin: QuestionSource | None = None) -> None:
        self.origin = origin
        self.counts = np.zeros(tokenizer.size, np.int64)  # how often each id occurs, counting each passage once
        self._passages: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._rows: list[tuple[Question, np.ndarray, int, tuple[tuple[int, int], ...]]] = []
        known: dict[str, int] = {}
        for row in rows:
            number = known.setdefault(row.context, len(known))
            if number == len(self._passages):
                ids, places = tokenizer.spans(row.context)
                self._passages.append((row.context, ids.astype(np.int32), places.astype(np.int32)))
                self.counts += np.bincount(ids, minlength=tokenizer.size)
            asked = tokenizer.encode(row.question)
            self.counts += np.bincount(asked, minlength=tokenizer.size)
            spans = tuple(tokens_of(self._passages[number][2], start, start + len(text)) for start, text in row.answers)
            lean = row._replace(context="")  # stored once, in _passages
            self._rows.append((lean, asked.astype(np.int32), number, tuple(s for s in spans if s[0] <= s[1])))
        sizes = [(len(asked), len(self._passages[number][1])) for _, asked, number, _ in self._rows]
        self.lengths = np.array(sizes, np.int64).reshape(-1, 2)  # (questions, 2): of the question, of the passage

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, n: int) -> Asked:
        row, asked, number, spans = self._rows[n]
        context, passage, places = self._passages[number]
        return Asked(asked, passage, places, spans, row.texts, row.question, context, row.impossible)

    @property
    def passages(self) -> int:
        return len(self._passages)

    @property
    def tokens(self) -> int:
        """Tokens of all questions, each with its passage."""
        return int(self.lengths.sum())

    def cut(self) -> tuple[int, int]:
        """The number of answers that begin or end inside a token, and of all answers."""
        found = [exact for answers in self._exactness() for exact in answers]
        return len(found) - sum(found), len(found)

    def _exactness(self) -> Iterator[list[bool]]:
        for row, _, number, _ in self._rows:
            places = self._passages[number][2]
            spans = [(start, start + len(text)) for start, text in row.answers]
            yield [characters_of(places, *tokens_of(places, *span)) == span for span in spans]


def tokens_of(places: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """The first and the last token that overlap these characters; first > last if none does."""
    first = int(np.searchsorted(places[:, 1], begin, side="right"))
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1
    return first, last


def characters_of(places: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """From the first character of the first token to the end of the last."""
    return (int(places[first, 0]), int(places[last, 1])) if first <= last else (0, 0)
