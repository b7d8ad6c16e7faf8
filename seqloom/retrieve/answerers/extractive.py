"""The best sentences of the passages, word for word, in the order of the documents. Needs no language model.

A sentence is as good as it is similar to the question (where there is an encoder) and as it has words of the question.
Sentences further down the list of passages, and those that are far behind the best one, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from seqloom.retrieve.answerers.reader import Reader
from seqloom.retrieve.document import Chunk, Document, Passage, Quotation, Sentence
from seqloom.retrieve.keywords import keywords
from seqloom.retrieve.relevance import Similarity
from seqloom.retrieve.sentences import one_line, sentences
from seqloom.retrieve.terms import terms

MOST = 4  # sentences of an answer
ENOUGH = 0.7  # of the score of the best sentence: what another must have
RANK = 0.2  # of the score that the first passage gives its sentences, and the last does not
LONGEST = 600  # characters of a sentence; what is longer is cut after a line, a clause or a word

Place = tuple[str, int, int]  # path, start, end


class Candidate(NamedTuple):
    path: str
    start: int
    end: int
    text: str
    rank: float  # of its passage: 1 for the best, towards 0
    about: tuple[str, ...]  # headings of its passage


class Extractive:
    name = "extractive"

    def __init__(self, similarity: Similarity | None = None, reader: Reader | None = None) -> None:
        """`similarity`: of texts, by an encoder; `reader`: of spans that answer a question."""
        self._similarity, self._reader = similarity, reader

    def answer(self, question: str, passages: Sequence[Passage], documents: dict[str, Document]) -> list[Sentence]:
        found = candidates(passages)
        if not found:
            return []
        scores = self._scores(question, found)
        span = self._reader.find(question, passages) if self._reader is not None else None
        holding = [n for n, one in enumerate(found) if span is not None and _holds(one, *span)]
        first = max(holding, key=lambda n: scores[n], default=None)
        order = _different([n for n in np.argsort(-scores, kind="stable").tolist() if n != first], found, first)
        chosen = [n for n in order if scores[n] >= ENOUGH * scores.max()][: MOST - (first is not None)]
        places = {path: n for n, path in enumerate(dict.fromkeys(one.path for one in found))}
        chosen.sort(key=lambda n: (places[found[n].path], found[n].start))
        return [_quoted(found[n], documents) for n in ([first] if first is not None else []) + chosen]

    def _scores(self, question: str, found: Sequence[Candidate]) -> np.ndarray:
        """Between 0 and about 1."""
        wanted = keywords(question)
        weight = _rarity(wanted, found)
        words = np.array([_overlap(weight, one) for one in found])
        scores: np.ndarray = words
        if self._similarity is not None and self._similarity.knows(question):
            scores = 0.5 * self._similarity.to(question, [one.text for one in found]) + 0.5 * words
        return scores + RANK * np.array([one.rank for one in found])


def candidates(passages: Sequence[Passage]) -> list[Candidate]:
    """Every sentence of the passages, each once, the best passage first."""
    found: dict[Place, Candidate] = {}
    for n, passage in enumerate(passages):
        chunk, rank = passage.chunk, 1.0 - n / len(passages)
        for start, end in _spans(chunk):
            key = (chunk.path, chunk.start + start, chunk.start + end)
            found.setdefault(key, Candidate(*key, chunk.text[start:end], rank, chunk.headings))
    parts = _parts(found)
    return [one for key, one in found.items() if key not in parts]


def _spans(chunk: Chunk) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in sentences(chunk.text):
        while end - start > LONGEST:
            cut = _cut(chunk.text, start, start + LONGEST)
            spans.append((start, cut))
            start = cut
        spans.append((start, end))
    spans = [(b - len(chunk.text[a:b].lstrip()), a + len(chunk.text[a:b].rstrip())) for a, b in spans]
    headings = {heading.strip() for heading in chunk.headings}
    return [(a, b) for a, b in spans if chunk.text[a:b].strip().lstrip("# ") not in headings]


def _cut(text: str, start: int, end: int) -> int:
    """Where a sentence that is too long is cut: after a line, a clause or a word, in the last half if there is one."""
    for borders in (r"\n", r"[;；:：,，、]\s*", r"\s+"):
        if found := [match.end() for match in re.finditer(borders, text[(start + end) // 2 : end])]:
            return (start + end) // 2 + found[-1]
    return end


def _parts(found: Iterable[Place]) -> set[Place]:
    """Those that lie inside of another: a sentence that one chunk cuts off, and of which another chunk has more."""
    parts, latest, reach = set(), "", 0
    for path, start, end in sorted(found, key=lambda place: (place[0], place[1], -place[2])):
        if path == latest and end <= reach:
            parts.add((path, start, end))
        latest, reach = path, max(end, reach if path == latest else 0)
    return parts


def _rarity(wanted: frozenset[str], found: Sequence[Candidate]) -> dict[str, float]:
    """How much a word of the question tells: one that is in every sentence tells little."""
    having = [set(terms(one.text)) for one in found]
    return {term: float(np.log1p(len(found) / (1 + sum(term in one for one in having)))) for term in wanted}


def _overlap(weight: dict[str, float], one: Candidate) -> float:
    """The share of the question's words that a sentence has; those of its headings count half."""
    inside, above = set(terms(one.text)), set(terms(" ".join(one.about)))
    got = sum(value * (1.0 if term in inside else 0.5 if term in above else 0.0) for term, value in weight.items())
    return got / (sum(weight.values()) or 1.0)


def _different(order: Sequence[int], found: Sequence[Candidate], first: int | None) -> list[int]:
    """Without sentences that say again, word for word, what a better one says."""
    said = {_bare(found[first].text): first} if first is not None else {}
    for n in order:
        said.setdefault(_bare(found[n].text), n)
    return [n for n in said.values() if n != first]


def _bare(text: str) -> str:
    return one_line(text).casefold()


def _holds(one: Candidate, path: str, start: int, end: int) -> bool:
    return one.path == path and one.start <= start and end <= one.end


def _quoted(one: Candidate, documents: dict[str, Document]) -> Sentence:
    document = documents[one.path]
    return Sentence(
        one.text,
        quotation=Quotation(one.path, one.start, one.end, one.text, document.number(one.start), document.unit),
    )
