"""JSONL with entities marked by character offsets, or with words and tags as lists; one sentence per line.

{"text": "Ada lives in Paris.", "spans": [{"start": 13, "end": 18, "label": "LOC"}]}
{"words": ["Ada", "lives", "in", "Paris", "."], "tags": ["B-PER", "O", "O", "B-LOC", "O"]}

A span may also be a list, [13, 18, "LOC"], and the lists may have other names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.core.words import cut_words
from seqloom.data.role_names import flag
from seqloom.data.rows import read_jsonl, text_of
from seqloom.data.shapes.tagged.conll import Sentence
from seqloom.data.shapes.tagged.schemes import spans_to_bio

Span = tuple[int, int, str]


class Fields(NamedTuple):
    """The names of the lists in a row."""

    words: str = "words"
    tags: str = "tags"
    spans: str = "spans"


USUAL = Fields()


def read_json(path: Path, column: str, tagged: bool, fields: Fields = USUAL) -> Iterator[Sentence]:
    """`tagged`: a sentence without tags is an error; otherwise tags are optional."""
    for number, row in read_jsonl(path):
        place = f"{path}:{number}"
        row |= {role: row[name] for role, name in fields._asdict().items() if name != role and name in row}
        if "words" in row:
            yield _listed(row, number, place, tagged)
        else:
            yield _spanned(row, number, place, column, tagged)


def of_spans(number: int, text: str, spans: list[Span], place: str) -> Sentence:
    """A text with entities (begin, end, label), split into words and tagged; an entity consists of whole words."""
    places = cut_words(text)
    begins, ends = [begin for begin, _ in places], [end for _, end in places]
    found, last = [], 0
    for begin, end, label in sorted(spans):
        if not 0 <= begin < end <= len(text) or not text[begin:end].strip():
            outside = f"span {begin} to {end} ({label}) is outside the text of {len(text)} characters"
            raise UserError(f"{place}: {outside}; count from 0, to the first character after it")
        begin, end = _stripped(text, begin, end)
        if begin < last:
            raise UserError(f"{place}: span {begin} to {end} ({label}) overlaps another; a word can have only one tag")
        first, final = bisect_left(begins, begin), bisect_left(ends, end)
        if begins[first : first + 1] != [begin] or ends[final : final + 1] != [end]:
            raise UserError(
                f"{place}: span {begin} to {end} ({label}), {quoted(text[begin:end])}, cuts through a word; "
                f"the words there are {quoted(' '.join(text[b:e] for b, e in places if b < end and e > begin))}"
            )
        found.append((first, final + 1, label))
        last = end
    words = [text[begin:end] for begin, end in places]
    return Sentence(number, words, spans_to_bio(len(words), found), text, places)


def untagged(number: int, text: str) -> Sentence:
    places = cut_words(text)
    return Sentence(number, [text[begin:end] for begin, end in places], [], text, places)


def _stripped(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without the white space at the ends of an entity."""
    part = text[begin:end]
    return begin + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _listed(row: Json, number: int, place: str, tagged: bool) -> Sentence:
    words = _texts(row, "words", place)
    if "tags" not in row:
        if tagged:
            raise UserError(f'{place}: words without tags; give "tags", a list with one per word, or {flag("tags")}')
        return Sentence(number, words, [])
    tags = _texts(row, "tags", place)
    if len(tags) != len(words):
        raise UserError(f"{place}: {len(words)} words and {len(tags)} tags; give one tag per word")
    return Sentence(number, words, tags)


def _texts(row: Json, column: str, place: str) -> list[str]:
    values = row[column]
    if not isinstance(values, list):
        raise UserError(f"{place}: {quoted(column)} must be a list of texts")
    if column == "tags":  # numbers of tags, as in some published sets
        values = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    for n, value in enumerate(values):
        if not isinstance(value, str) or not value.strip():
            raise UserError(f"{place}: {quoted(column)} has {quoted(value)} at position {n + 1}; expected a text")
    return [value.strip() for value in values]


def _spanned(row: Json, number: int, place: str, column: str, tagged: bool) -> Sentence:
    text = text_of(row, column, place, '; a line has "text" and "spans", or "words" and "tags"', "text")
    if "spans" not in row:
        if tagged:
            way_out = f'give "spans", an empty list if there are no entities, or {flag("spans")}'
            raise UserError(f"{place}: a text without spans; {way_out}")
        return untagged(number, text)
    if not isinstance(row["spans"], list):
        raise UserError(f'{place}: "spans" must be a list of objects with start, end and label')
    return of_spans(number, text, [_span(span, place) for span in row["spans"]], place)


def _span(span: Any, place: str) -> Span:
    """The offsets and the label of one entity: an object, or a list of the three."""
    if isinstance(span, list) and len(span) == 3:
        span = dict(zip(("start", "end", "label"), span, strict=True))
    if isinstance(span, dict):
        begin, end = span.get("start", span.get("start_offset")), span.get("end", span.get("end_offset"))
        label = span.get("label")
        whole = isinstance(begin, int) and isinstance(end, int) and not isinstance(begin, bool)
        if whole and isinstance(label, str) and label.strip():
            return begin, end, label.strip()  # type: ignore[return-value]
    example = '{"start": 0, "end": 3, "label": "PER"}'
    raise UserError(f"{place}: expected a span like {example}, not {str(span)[:60]}")
