"""What answers are checked against: stretches of documents, their sentences, and the places in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from seqloom.retrieve.checking.references import PRONOUNS
from seqloom.retrieve.checking.tokens import CJK, Token, tokens
from seqloom.retrieve.document import Document, Quotation, Unit
from seqloom.retrieve.sentences import sentences


class Source(Protocol):
    """A chunk, a document, or whatever else has these. With a `start`, its text begins there in its document."""

    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def unit(self) -> Unit: ...


class Parsed(NamedTuple):
    """A sentence of a source."""

    start: int
    end: int
    words: frozenset[str]  # that a sentence near to it shares


def place(source: Source, start: int, end: int) -> Quotation:
    """A stretch of a source as a quotation. Of a chunk only the page or line of its start is known."""
    begin = getattr(source, "start", 0)
    number = source.number(start) if isinstance(source, Document) else getattr(source, "number", 1)
    return Quotation(source.path, begin + start, begin + end, source.text[start:end], number, source.unit)


_LATIN, _CHINESE = re.compile(rf"[^\W_{CJK}]+"), re.compile(f"[{CJK}]+")


def words(text: str) -> frozenset[str]:
    """What is counted to find the nearest sentence: words without their endings, pairs of Chinese characters."""
    found = {word[:5] for word in _LATIN.findall(text.lower())}
    for run in _CHINESE.findall(text):
        found.update(map("".join, zip(run, run[1:] or " ", strict=False)))
    return frozenset(found)


@lru_cache(maxsize=256)
def parsed(text: str) -> tuple[Parsed, ...]:
    """The sentences of a text."""
    return tuple(
        Parsed(start, end, words(text[start:end])) for start, end in sentences(text) if text[start:end].strip()
    )


@lru_cache(maxsize=256)
def joined(text: str) -> tuple[Parsed, ...]:
    """Sentences of which one ends with a semicolon, with the next: a writer may exchange them."""
    pairs = pairwise(parsed(text))
    both = [(one.start, other.end) for one, other in pairs if text[one.end - 1] in ";；"]
    return tuple(Parsed(start, end, words(text[start:end])) for start, end in both)


@lru_cache(maxsize=1024)
def read(text: str) -> tuple[Token, ...]:
    """The tokens of a sentence of a source."""
    return tuple(tokens(text))


class Surroundings(NamedTuple):
    """Sentences that words of a sentence may come from, without function words."""

    near: Sequence[Sequence[Token]]  # the source sentence and the two before, the last first
    topic: Sequence[Sequence[Token]]  # the first sentence, and the name of the file
    every: Sequence[Sequence[Token]]  # all of the document


def around(source: Source, start: int) -> Surroundings:
    """What a pronoun of the source sentence at `start` may refer to."""
    parts = parsed(source.text)
    every = _every(source.text)
    here = next((n for n, part in enumerate(parts) if part.start >= start), 0)
    far = here
    for _ in range(2):  # a sentence that begins with a pronoun itself does not name anything new
        far = max(0, far - 1)
        while far > 0 and read(source.text[parts[far].start : parts[far].end])[0].form in PRONOUNS:
            far -= 1
    near = every[far : here + 1][::-1]
    name = re.sub(r"[\W_]+", " ", source.path.rpartition("/")[2].rpartition(".")[0])
    return Surroundings(near, [*every[:1], _content(name)], every)


@lru_cache(maxsize=64)
def _every(text: str) -> tuple[tuple[Token, ...], ...]:
    return tuple(_content(text[part.start : part.end]) for part in parsed(text))


def _content(text: str) -> tuple[Token, ...]:
    return tuple(token for token in read(text) if token.kind not in ("function", "break"))
