"""An answer as text for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from seqloom.core.rows import Json
from seqloom.retrieve.document import Chunk, Document, Passage, Quotation, Sentence
from seqloom.retrieve.reply import Reply
from seqloom.retrieve.sentences import one_line

BEST = 3  # passages that a refusal shows
SINCE = {"changed": "the file has changed since it was indexed", "gone": "the file is no longer there"}


def as_text(reply: Reply) -> str:
    return "\n".join(_lines(reply))


def _lines(reply: Reply) -> Iterator[str]:
    if reply.refused:
        yield f"no answer: {reply.refused}{_best(reply)}"
        for passage in reply.passages[:BEST]:
            where = place(passage.chunk) + (" (partly hidden in the file)" if passage.chunk.hidden else "")
            yield f"  {_scores(passage)}  {where}: {plain(short(passage.chunk.text, 80))}"
        return
    for sentence in reply.sentences:
        if sentence.quotation is not None:
            yield f"“{plain(sentence.quotation.text)}”"
            yield f"  {place(sentence.quotation)}{_remarks(sentence.quotation, reply)}"
    unverified = [sentence for sentence in reply.sentences if sentence.quotation is None]
    if unverified:
        if len(unverified) < len(reply.sentences):
            yield ""
        yield "not verified:"
    for sentence in unverified:
        yield f"- {plain(sentence.text)}"
        yield f"  {reasons(sentence)}"
        if sentence.nearest is not None:
            where = f"({place(sentence.nearest)}){_remarks(sentence.nearest, reply)}"
            yield f"  nearest: “{plain(short(sentence.nearest.text, 200))}” {where}"
    if reply.changed:
        yield ""
        yield "bring the index up to date: run the same seqloom index command again"


def _best(reply: Reply) -> str:
    names = {"words": "words of the question", "similarity": "similarity"}
    said = [f"{names[name]} {value:.2f}" for name, value in reply.best.items()]
    return f" (best passages: {', '.join(said)})" if said else ""


def _scores(passage: Passage) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in passage.scores.items()) or f"{passage.score:.3f}"


def reasons(sentence: Sentence) -> str:
    if sentence.failed:
        return f"failed checks: {', '.join(sentence.failed)}"
    return "no check failed, but it is not a quotation"


def place(one: Quotation | Chunk) -> str:
    """`notes/terms.md, line 12`; a row of a table has its number in its path."""
    return printable(one.path) if one.unit == "row" else f"{printable(one.path)}, {one.unit} {one.number}"


def hidden(quotation: Quotation, document: Document) -> list[str]:
    """Why a reader of the file does not see a quotation, or a part of it."""
    touched = (one.reason for one in document.hidden if one.start < quotation.end and quotation.start < one.end)
    return list(dict.fromkeys(touched))


def _remarks(quotation: Quotation, reply: Reply) -> str:
    why = hidden(quotation, reply.documents[quotation.path])
    said = [f"hidden in the file: {plain(', '.join(why))}"] if why else []
    said += [SINCE[reply.changed[quotation.path]]] if quotation.path in reply.changed else []
    return f" ({'; '.join(said)})" if said else ""


def plain(text: str) -> str:
    """On one line, and without characters that a terminal would obey."""
    return printable(one_line(text))


def printable(text: str) -> str:
    """Characters that a terminal would obey as codes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def short(text: str, most: int) -> str:
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def as_json(reply: Reply) -> Json:
    return {
        "question": reply.question,
        "answerer": reply.answerer,
        "encoder": reply.encoder or None,
        "refused": reply.refused or None,
        "best": reply.best,
        "sentences": [
            {
                "text": one.text,
                "verified": one.quotation is not None,
                "quotation": _quotation(one.quotation, reply),
                "nearest": _quotation(one.nearest, reply),
                "failed": list(one.failed),
            }
            for one in reply.sentences
        ],
        "passages": [_passage(passage) for passage in reply.passages],
    }


def _quotation(one: Quotation | None, reply: Reply) -> Json | None:
    if one is None:
        return None
    where = {"path": one.path, "start": one.start, "end": one.end, one.unit: one.number}
    since = reply.changed.get(one.path)
    return {**where, "text": one.text, "hidden": hidden(one, reply.documents[one.path]), "since_indexed": since}


def _passage(passage: Passage) -> Json:
    chunk = passage.chunk
    where = {"path": chunk.path, "start": chunk.start, "end": chunk.end, chunk.unit: chunk.number}
    about = {"headings": list(chunk.headings), "hidden": chunk.hidden, "text": chunk.text}
    return {**where, "score": passage.score, "scores": passage.scores, **about}
