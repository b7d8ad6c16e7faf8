"""Documents cut into chunks that are indexed and found as one, along their structure.

Sections first: no chunk goes beyond a heading, and a heading stands with what follows it. Inside a section,
neighbouring paragraphs are joined as long as they fit; a paragraph that is too long is cut between sentences, and a
sentence only if it is too long by itself. Chunks are in order and cover all text that is not white space.

Sizes are in tokens, estimated from characters and bytes: encoders read a fixed number of them, and scripts differ. The
default is what MiniLM, which reads 256, sees of English: 250, about 1,000 characters. Of Chinese it is 400 characters,
which the encoders made for it (512 tokens, at most one for a character) read whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Chunk, Document
from seqloom.retrieve.sentences import sentences

SIZE = 250  # tokens of a chunk
SMALLEST = 16  # that may be asked for
FULL = 0.25  # of the size: a chunk with less takes the first sentences of a long paragraph, too

Span = tuple[int, int]

_BLANK = re.compile(r"\n(?:[ \t\r\f\v\u3000]*\n)+")
_GOOD_CUT = re.compile(r".*[，、,;；:：\s]", re.DOTALL)


def chunks(document: Document, size: int = SIZE, overlap: int = 0) -> list[Chunk]:
    """`size`: tokens of a chunk, estimated; `overlap`: sentences of the chunk before that a chunk of the same section
    repeats. None by default: a sentence is then found in one place only."""
    if size < SMALLEST or overlap < 0:
        raise UserError(f"chunks of {size} tokens with an overlap of {overlap}: use {SMALLEST} or more, and 0 or more")
    text = document.text
    found = []
    names = _Headings(document)
    hidden = _Hidden(document)
    for section, headed in _sections(document):
        spans = [span for each in _packed(text, section, headed, size) if (span := _bare(text, *each))]
        if overlap:
            spans = _overlapped(text, spans, size, overlap)
        for start, end in spans:
            number, above = document.number(start), names.at(end)
            unseen = hidden.touches(start, end)
            found.append(Chunk(document.path, start, end, text[start:end], number, document.unit, above, unseen))
    return found


def tokens(text: str) -> float:
    """About as many tokens as a text has: a quarter for a letter, five eighths for a Chinese character."""
    characters = len(text)
    if text.isascii():
        return characters / 4
    return characters / 4 + (len(text.encode("utf-8", "replace")) - characters) * 3 / 16


def _sections(document: Document) -> Iterator[tuple[Span, int]]:
    """From heading to heading, and where the text of the heading ends; headings with nothing between them belong
    together."""
    text, start = document.text, 0
    previous = -1
    for heading in document.headings:
        line = text.rfind("\n", 0, heading.start) + 1
        if line > start and not _follows(text, previous, line):
            yield (start, line), previous
            start = line
        previous = heading.start + len(heading.text)
    yield (start, len(text)), previous


def _follows(text: str, end: int, start: int) -> bool:
    """Whether nothing but white space and marks (such as those that underline it) stands between a heading's end and a
    place after it."""
    return end >= 0 and start - end < 400 and not any(character.isalnum() for character in text[end:start])


class _Headings:
    """Which headings a place stands under."""

    def __init__(self, document: Document) -> None:
        self.starts = [heading.start for heading in document.headings]
        self.paths: list[tuple[str, ...]] = []
        above: list[tuple[int, str]] = []
        for heading in document.headings:
            while above and above[-1][0] >= heading.level:
                above.pop()
            above.append((heading.level, " ".join(heading.text.split())))
            self.paths.append(tuple(name for _, name in above))

    def at(self, offset: int) -> tuple[str, ...]:
        found = bisect_left(self.starts, offset)
        return self.paths[found - 1] if found else ()


class _Hidden:
    """Whether a part of a span is hidden."""

    def __init__(self, document: Document) -> None:
        self.starts = [each.start for each in document.hidden]
        self.ends = list(accumulate((each.end for each in document.hidden), max))  # they may lie inside each other

    def touches(self, start: int, end: int) -> bool:
        before = bisect_left(self.starts, end)
        return before > 0 and self.ends[before - 1] > start


def _packed(text: str, section: Span, headed: int, size: int) -> Iterator[Span]:
    """Paragraphs joined while they fit, cut where one does not. `headed`: where the heading of the section ends."""
    begin, used = section[0], 0.0  # the chunk so far, from `begin`
    for start, end in _paragraphs(text, section):
        cost = tokens(text[start:end])
        if used and used + cost > size:
            alone = begin == section[0] and _follows(text, headed, start)  # a heading without its text
            if not alone and (used >= FULL * size or cost <= size):
                yield begin, start
                begin, used = start, 0.0
        if used + cost <= size:
            used += cost
            continue
        *whole, (begin, last) = _split(text, (begin, end), used + cost, size)
        yield from whole
        used = tokens(text[begin:last])
    yield begin, section[1]


def _paragraphs(text: str, section: Span) -> Iterator[Span]:
    """From one empty line to the next; together they are the section."""
    start, end = section
    for found in _BLANK.finditer(text, start, end):
        yield start, found.end()
        start = found.end()
    if start < end:
        yield start, end


def _split(text: str, span: Span, cost: float, size: int) -> list[Span]:
    """Cut between sentences, into parts of about the same size."""
    start, end = span
    left = cost  # of what is not in a part yet
    aim = left / -(-left // size)
    starts = [start, *(start + first for first, _ in sentences(text[start:end])[1:]), end]
    found: list[Span] = []
    begin, used = start, 0.0
    for first, after in pairwise(starts):
        cost = tokens(text[first:after])
        if used and (used + cost > size or used + cost / 2 > aim):
            found.append((begin, first))
            left -= used
            aim = left / max(1, -(-left // size))
            begin, used = first, 0.0
        if cost > size:
            *whole, (begin, _) = _hard_cut(text, (first, after), size)
            found += whole
            left -= cost
            cost = tokens(text[begin:after])
            left += cost
        used += cost
    return [*found, (begin, end)]


def _hard_cut(text: str, span: Span, size: int) -> list[Span]:
    """A sentence that is too long, cut after a comma or a space where there is one."""
    start, end = span
    found: list[Span] = []
    while tokens(text[start : min(end, start + 4 * size + 1)]) > size:
        piece = text[start : min(end, start + 4 * size)]
        while (cost := tokens(piece)) > size:
            piece = piece[: max(1, min(len(piece) - 1, int(len(piece) * size / cost)))]
        if (good := _GOOD_CUT.match(piece, len(piece) // 2)) and good.end() < end - start:
            piece = piece[: good.end()]
        found.append((start, start + len(piece)))
        start += len(piece)
    return [*found, (start, end)]


def _overlapped(text: str, spans: list[Span], size: int, overlap: int) -> list[Span]:
    """Every span but the first begins with the last sentences of the one before, as far as half a chunk."""
    found = spans[:1]
    for (start, end), (first, last) in pairwise(spans):
        begin = first
        for sentence, _ in reversed(sentences(text[start:end])[-overlap:]):
            if start + sentence > start and tokens(text[start + sentence : first]) <= size / 2:
                begin = start + sentence
        found.append((begin, last))
    return found


def _bare(text: str, start: int, end: int) -> Span | None:
    """Without white space around; None if nothing is left."""
    piece = text[start:end]
    if not (kept := piece.strip()):
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(kept)
