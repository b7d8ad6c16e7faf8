"""Tagged sentences: re-read from the beginning as often as needed, never held in memory.

They come from CoNLL columns, JSONL (spans of a text, or lists of words and tags), or a sample. Entity tags of any
scheme are converted to BIO; tags without prefixes (parts of speech) are left as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.files import check_file, read_lines, suffix
from seqloom.data.measured import Measured, Measures
from seqloom.data.role_names import flag
from seqloom.data.samples import find_sample
from seqloom.data.shapes.tagged.conll import Sentence, looks_like_columns, read_columns
from seqloom.data.shapes.tagged.schemes import TagSurvey, parse, to_bio
from seqloom.data.shapes.tagged.spans import USUAL, Fields, of_spans, read_json, untagged

JSON = {".jsonl", ".ndjson"}
COLUMNS = {".conll", ".conllu", ".bio", ".iob", ".iob2", ".tsv"}  # never plain text
_SINGLE = 1.2  # characters per word, below which words are characters; 1.0 but for numbers and foreign words
Read = Callable[[], Iterator[Sentence]]


@dataclass(frozen=True)
class TaggedMeasures(Measures):
    words: int
    characters: int  # in all words
    survey: TagSurvey


class TaggedSource(Measured[TaggedMeasures]):
    """Tagged sentences; those without words are left out."""

    unit = "sentences"

    def __init__(self, name: str, read: Read, entities: bool | None = None) -> None:
        """`entities`: whether the tags mark entities; None: inferred from the tags."""
        self.name = name  # what the user typed
        self._read, self._entities = read, entities

    def rows(self) -> Iterator[Sentence]:
        """Entity tags in BIO."""
        rows = self.raw()
        return (row._replace(tags=to_bio(row.tags)) for row in rows) if self.entities else rows

    def raw(self) -> Iterator[Sentence]:
        """Tags as in the file."""
        return (row for row in self._read() if row.words)

    def all(self) -> Iterator[Sentence]:
        return self._read()

    def key(self, row: Sentence) -> str:
        return " ".join(row.words)

    def like(self, name: str, read: Read) -> TaggedSource:
        return TaggedSource(name, read, self.entities)

    @cached_property
    def entities(self) -> bool:
        """Whether the tags mark entities, which are scored as a whole; otherwise words are scored one by one."""
        return self.survey.entities if self._entities is None else self._entities

    @property
    def survey(self) -> TagSurvey:
        return self.measures.survey

    @property
    def words(self) -> int:
        return self.measures.words

    @property
    def single(self) -> bool:
        """Nearly every word is a single character, as in Chinese text tagged by character."""
        return self.measures.characters < _SINGLE * self.words

    @property
    def remark(self) -> str:
        """How the tags were read, for the log."""
        if not self.entities:
            return "tags without prefixes, scored word by word"
        return "tags in BIO" if self.survey.scheme == "BIO" else f"tags in {self.survey.scheme}, converted to BIO"

    @property
    def fault(self) -> str:
        """What is invalid in the entity tags, for the log."""
        count, lines = self.survey.broken if self.entities else (0, [])
        return f"{count:,} invalid tags (first on line {lines[0]}), read as starts of entities" if count else ""

    def measure(self) -> TaggedMeasures:
        count = dropped = words = characters = length = 0
        digest, survey = hashlib.sha256(), TagSurvey()
        for row in self._read():
            if not row.words:
                dropped += 1
                continue
            data = ("\0".join(row.words) + "\1" + "\0".join(row.tags) + "\2").encode()
            digest.update(data)
            survey.add(row.line, row.tags)
            count, words, length = count + 1, words + len(row.words), length + len(data)
            characters += sum(map(len, row.words))
        return TaggedMeasures(count, dropped, length, digest.hexdigest(), words, characters, survey)


def open_tagged(spec: str, word: int = 1, tag: int = -1, column: str = "text", fields: Fields = USUAL) -> TaggedSource:
    """CoNLL columns, .jsonl or `sample:NAME`; also compressed. `word` and `tag`: columns; `column`: text in JSONL;
    `fields`: names of its lists."""
    source = TaggedSource(spec, _find(spec, word, tag, column, fields))
    if not source.count:
        reason = f"all {source.dropped:,} lines are without words" if source.dropped else "it is empty"
        raise UserError(f"{spec}: contains no sentences; {reason}")
    if source.entities and (bare := source.survey.bare):
        line, example = source.survey.first_lines[bare[0]], next(t for t in source.survey.tags if parse(t)[1])
        raise UserError(
            f"{spec}:{line}: tag {quoted(bare[0])} has no prefix, but others have, like {quoted(example)}; "
            f"fix it, or choose another column: {flag('tags', 'NUMBER')}"
        )
    return source


def open_untagged(
    spec: str, word: int = 1, tag: int = -1, column: str = "text", fields: Fields = USUAL
) -> Iterator[Sentence]:
    """Sentences to predict from: any format of `open_tagged`, tags optional; otherwise one text per line."""
    rows = (row for row in _find_any(spec, word, tag, column, fields)() if row.words)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{spec}: contains no text")

    def all_rows() -> Iterator[Sentence]:
        yield first
        yield from rows

    return all_rows()


def _find(spec: str, word: int, tag: int | None, column: str, fields: Fields) -> Read:
    if spec.startswith("sample:"):
        sample = find_sample(spec, "tagged")
        return lambda: (of_spans(n, text, spans, spec) for n, (text, spans) in enumerate(sample.read(), 1))
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give one file, with CoNLL columns or JSONL")
    if suffix(path) in JSON:
        return lambda: read_json(path, column, tag is not None, fields)
    return lambda: read_columns(path, word, tag)


def in_columns(spec: str) -> bool:
    """Whether it is a CoNLL file, rather than plain text, JSONL or a sample."""
    path = Path(spec)
    if spec.startswith("sample:") or suffix(path) in JSON or not path.is_file():
        return False
    return suffix(path) in COLUMNS or looks_like_columns(path)


def _find_any(spec: str, word: int, tag: int, column: str, fields: Fields) -> Read:
    read = _find(spec, word, None, column, fields)
    path = Path(spec)
    if spec.startswith("sample:") or suffix(path) in JSON:
        return read
    if in_columns(spec):
        return lambda: _columns_or_words(path, word, tag)
    return lambda: (untagged(number, line.strip()) for number, line in enumerate(read_lines(path), 1))


def _columns_or_words(path: Path, word: int, tag: int) -> Iterator[Sentence]:
    """With tags, unless the file has no tag column."""
    try:
        next(read_columns(path, word, tag), None)
    except UserError:
        return read_columns(path, word, None)
    return read_columns(path, word, tag)
