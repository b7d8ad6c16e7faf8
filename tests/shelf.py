"""A few documents that can be searched, in memory: what answering needs of an index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.retrieve.chunking import chunks
from seqloom.retrieve.document import Document, Passage
from seqloom.retrieve.keywords import keywords
from seqloom.retrieve.terms import term_id, terms


class Words:
    """An encoder: texts are alike if they share words, and `guarantee` and `warranty` are the same word."""

    name, width = "words", 64

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        found = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(found, texts, strict=True):
            for term in keywords(text.lower().replace("warranty", "guarantee")):
                row[term_id(term) % self.width] += 1.0
        return found / np.linalg.norm(found, axis=1, keepdims=True).clip(1e-6)


class Shelf:
    def __init__(self, *documents: Document, encoder: Words | None = None) -> None:
        self._documents, self.encoder = {document.path: document for document in documents}, encoder

    def search(self, query: str, k: int) -> list[Passage]:
        wanted, found = set(terms(query)), []
        for document in self._documents.values():
            for chunk in chunks(document):
                shared = len(wanted & set(terms("\n".join([*chunk.headings, chunk.text]))))
                found += [Passage(chunk, float(shared), {"bm25": float(shared)})] if shared else []
        return sorted(found, key=lambda passage: -passage.score)[:k]

    def document(self, path: str) -> Document:
        return self._documents[path]

    def changed(self, path: str) -> str:
        return ""


def text(path: str, content: str, **more: object) -> Document:
    """A plain text with a place for every line."""
    starts = [0, *(n + 1 for n, c in enumerate(content) if c == "\n" and n + 1 < len(content))]
    marks = tuple((start, number) for number, start in enumerate(starts, 1))
    return Document(path, content, path, "line", marks, **more)  # type: ignore[arg-type]


TERMS = text(
    "shop/terms.txt",
    "Orders are shipped within two days.\n\nThe guarantee lasts three years. It does not cover the battery.\n\n"
    "Returns are free of charge within 30 days.\n",
)
BOAT = text("boat.txt", "The harbour opens in May. A berth costs 40 euros per night. The crane lifts 12 tonnes.\n")
CHINESE = text("说明.txt", "保修期为三年。电池不在保修范围内。\n\n订单在两天内发货。退货在三十天内免费。\n")
