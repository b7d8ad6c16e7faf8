"""`ask`: a question, the passages of an index that are about it, and an answer of which every citation is checked.

import seqloom
seqloom.index("notes", out="notes.index")
print(seqloom.ask("notes.index", "How long is the guarantee?"))
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Protocol

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.retrieve.answerers import Answerer, find_answerer
from seqloom.retrieve.answerers.extractive import candidates
from seqloom.retrieve.document import Document, Passage, Quotation, Sentence
from seqloom.retrieve.page import page
from seqloom.retrieve.relevance import Similarity, measure, refusal
from seqloom.retrieve.reply import Reply
from seqloom.retrieve.showing import as_json, as_text

PASSAGES = 8
LONGEST = 4000  # characters of a question


class Searchable(Protocol):
    """What an index does for a question."""

    @property
    def encoder(self) -> Any: ...  # texts -> unit vectors; None: BM25 alone
    def search(self, query: str, k: int) -> list[Passage]: ...
    def document(self, path: str) -> Document: ...
    def changed(self, path: str) -> str: ...  # since it was indexed: `changed`, `gone`, or nothing


class Replied(Reply):
    """A reply that can show itself."""

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def facts(self) -> Json:
        """As `seqloom ask --json` prints it."""
        return as_json(self)

    def page(self) -> str:
        """As an HTML page."""
        return page(self)


class Asking:
    """An index and an answerer, for one question or many."""

    def __init__(
        self,
        index: Searchable,
        *,
        answerer: str | Answerer = "extractive",
        reader: str | None = None,
        k: int = PASSAGES,
    ) -> None:
        if k < 1:
            raise UserError(f"k={k}: give the number of passages to search for, 1 or more")
        self.index, self.k = index, k
        self._similarity = Similarity(index.encoder.encode) if index.encoder is not None else None
        self.answerer = find_answerer(answerer, self._similarity, reader) if isinstance(answerer, str) else answerer

    @cached_property
    def encoder(self) -> str:
        return str(getattr(self.index.encoder, "name", "encoder")) if self.index.encoder is not None else ""

    def ask(self, question: str) -> Replied:
        question = clean(question)
        passages = self.index.search(question, self.k)
        documents = {path: self.index.document(path) for path in dict.fromkeys(p.chunk.path for p in passages)}
        best = self.relevance(question, passages)
        refused, sentences = refusal(question, best), []
        if not refused:
            sentences = self.answerer.answer(question, passages, documents)
            refused = "" if sentences else "the passages that were found have no answer"
        paths = dict.fromkeys(q.path for one in sentences for q in (one.quotation, one.nearest) if q is not None)
        changed = {path: how for path in paths if (how := self.index.changed(path))}
        return Replied(
            question, tuple(_placed(sentence, documents) for sentence in sentences), tuple(passages), refused,
            answerer=self.answerer.name, encoder=self.encoder, best=best, documents=documents,
            changed=changed,
        )  # fmt: skip

    def relevance(self, question: str, passages: list[Passage]) -> dict[str, float]:
        """How near the passages come to the question."""
        texts = ["\n".join([*passage.chunk.headings, passage.chunk.text]) for passage in passages]
        near = None
        if self._similarity is not None and self._similarity.knows(question):
            near = self._similarity.to(question, [one.text for one in candidates(passages)])
        return measure(question, texts, near)


def clean(question: str) -> str:
    """On one line and in characters that can be written; refused if it is empty or no question."""
    question = " ".join(question.encode("utf-8", "replace").decode().split())
    if not question:
        raise UserError('the question is empty; ask something, for example "How long is the guarantee?"')
    if len(question) > LONGEST:
        raise UserError(f"the question has {len(question):,} characters; ask in at most {LONGEST:,}")
    return question


def ask(
    index: str | Path | Searchable,
    question: str,
    *,
    answerer: str = "extractive",
    reader: str | Path | None = None,
    k: int = PASSAGES,
) -> Replied:
    """The answer to a question from the documents of an index, or a refusal if nothing relevant was found.

    `answerer`: `extractive`, a language model (a run, `weights:smollm2`, `hf:PATH`), or `openai:URL#MODEL`; `reader`: a
    question answering run for the extractive one; `k`: passages to search for.
    """
    question = clean(question)
    if not isinstance(index, str | Path):
        return Asking(index, answerer=answerer, reader=str(reader) if reader else None, k=k).ask(question)
    from seqloom.retrieve.index import Index

    with Index.open(index) as opened:
        return Asking(opened, answerer=answerer, reader=str(reader) if reader else None, k=k).ask(question)


def _placed(sentence: Sentence, documents: dict[str, Document]) -> Sentence:
    """Its quotations with the page or line of their own start, not of their chunk's; and certainly at their place."""

    def place(one: Quotation | None) -> Quotation | None:
        if one is None or documents[one.path].text[one.start : one.end] != one.text:
            return None
        return replace(one, number=documents[one.path].number(one.start))

    quotation, nearest = place(sentence.quotation), place(sentence.nearest)
    failed = ("source",) if sentence.quotation is not None and quotation is None else sentence.failed
    return replace(sentence, quotation=quotation, nearest=nearest, failed=failed)
