"""Documents and chunks as the catalogue stores them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import Any

from seqloom.retrieve.document import Chunk, Document, Heading, Hidden


def document_hash(document: Document) -> bytes:
    """Of all that is kept of it, so that a row that did not change is not indexed again with its table."""
    facts = to_json([document.path, document.key, facts_of(document), document.text])
    return hashlib.sha256(to_bytes(facts)).digest()


def chunk_id(sha256: bytes, number: int) -> int:
    """Of the chunk with this number in a document: 63 bits that are the same whenever it is indexed."""
    return int.from_bytes(hashlib.sha256(sha256 + number.to_bytes(8, "big")).digest()[:8], "big") >> 1


def facts_of(document: Document) -> str:
    """What is kept of it beside its text."""
    d = document
    return to_json([d.title, d.unit, d.marks, d.headings, d.hidden])


def to_document(path: str, key: str, about: str, text: bytes) -> Document:
    try:
        title, unit, marks, headings, hidden = json.loads(about)
        return Document(
            path, text.decode("utf-8", "surrogatepass"), title, unit, tuple(map(tuple, marks)),
            tuple(Heading(*heading) for heading in headings), tuple(Hidden(*place) for place in hidden), key=key,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise sqlite3.DatabaseError(f"the record of {path!r} is damaged") from error


def to_chunk(text: str, document: Document, start: int, end: int, _: int, headings: str, hidden: int) -> Chunk:
    number = document.number(start)
    return Chunk(document.path, start, end, text, number, document.unit, tuple(json.loads(headings)), bool(hidden))


def to_json(value: Any) -> str:
    """Lone surrogates are escaped, so that every text can be written."""
    return json.dumps(value, separators=(",", ":"))


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
