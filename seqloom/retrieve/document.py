"""What retrieval works on: documents as text, their chunks, passages that a search found, and answers that quote them.

Offsets are characters of the extracted text of a document, [start, end). Of every offset a document knows the page or
the line of the original file, so whatever is quoted can be found there again.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Unit = Literal["line", "page", "paragraph", "row"]  # what a place in the original is counted in


class Heading(NamedTuple):
    start: int  # offset of its text
    level: int  # 1 is the highest
    text: str


class Hidden(NamedTuple):
    """A stretch of text that a person who opens the file does not see."""

    start: int
    end: int
    reason: str  # such as "comment", "white on white", "zero width"


@dataclass(frozen=True)
class Document:
    """A file, or a row of a table, as text."""

    path: str  # relative to the indexed folder, with slashes; a row of a table: "reviews.csv#12"
    text: str
    title: str
    unit: Unit
    marks: tuple[tuple[int, int], ...] = ((0, 1),)  # offsets, and the page, line, paragraph or row that begins there
    headings: tuple[Heading, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be read of it, such as pages without text
    key: str = ""  # a row's own id, if its table has one: judgements name it

    def number(self, offset: int) -> int:
        """The page, line or row of the original that an offset lies in."""
        return self.marks[max(0, bisect_right(self.marks, offset, key=lambda mark: mark[0]) - 1)][1]


@dataclass(frozen=True)
class Chunk:
    """A stretch of a document that is indexed and found as one."""

    path: str
    start: int
    end: int
    text: str  # document.text[start:end]
    number: int  # page, line or row of its start
    unit: Unit
    headings: tuple[str, ...] = ()  # that it stands under, the highest first, with one that it begins with
    hidden: bool = False  # some of it is not visible in the original


@dataclass(frozen=True)
class Passage:
    """A chunk that a search found."""

    chunk: Chunk
    score: float  # of the search as a whole; only the order is comparable between searches
    scores: dict[str, float] = field(default_factory=dict)  # of each part of the search: "bm25", "dense"


@dataclass(frozen=True)
class Quotation:
    """A verbatim stretch of a document."""

    path: str
    start: int
    end: int
    text: str
    number: int
    unit: Unit


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer: a quotation, or a statement that was not verified, with the checks that failed."""

    text: str
    quotation: Quotation | None = None  # found verbatim at its place: only then is it shown as a citation
    nearest: Quotation | None = None  # of an unverified sentence: what it was compared with
    failed: tuple[str, ...] = ()  # names of the checks that failed


@dataclass(frozen=True)
class Answer:
    question: str
    sentences: tuple[Sentence, ...]
    passages: tuple[Passage, ...]  # that were found, the best first
    refused: str = ""  # why there is no answer
