"""Questions and passages as ids, with the characters that each token stands for; in memory, a passage once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from seqloom.data.shapes.questions.reading import Question, QuestionSource


class Spans(Protocol):
    """What is asked of a tokenizer here."""

    size: int

    def encode(self, text: str) -> np.ndarray: ...
    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]: ...


class Asked(NamedTuple):
    """One question, as a task reads it."""

    asked: np.ndarray  # ids of the question
    passage: np.ndarray  # ids of the passage
    places: np.ndarray  # (tokens of the passage, 2): the characters they stand for
    spans: tuple[tuple[int, int], ...]  # the first and the last token of each true answer that is found
    texts: tuple[str, ...]  # all true answers; none: there is none in the passage
    question: str
    context: str
    impossible: bool


class QuestionRows:
    def __init__(self, rows: Iterable[Question], tokenizer: Spans, origin: QuestionSource | None = None) -> None:
        self.origin = origin
        self.counts = np.zeros(tokenizer.size, np.int64)  # how often each id occurs, a passage counted once
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
            lean = row._replace(context="")  # the text is kept with its passage
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
        """Of all questions, each with its passage."""
        return int(self.lengths.sum())

    def cut(self) -> tuple[int, int]:
        """Answers that begin or end inside a token, and answers in all."""
        found = [exact for answers in self._exactness() for exact in answers]
        return len(found) - sum(found), len(found)

    def _exactness(self) -> Iterator[list[bool]]:
        for row, _, number, _ in self._rows:
            places = self._passages[number][2]
            spans = [(start, start + len(text)) for start, text in row.answers]
            yield [characters_of(places, *tokens_of(places, *span)) == span for span in spans]


def tokens_of(places: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """The first and the last token that hold any of these characters; the first is after the last: none does."""
    first = int(np.searchsorted(places[:, 1], begin, side="right"))
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1
    return first, last


def characters_of(places: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """From the first character of the first token to the end of the last."""
    return (int(places[first, 0]), int(places[last, 1])) if first <= last else (0, 0)
