"""Sentences of tagged words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from seqloom.core.choice import Choice
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.quoting import quoted
from seqloom.core.rows import Row
from seqloom.data.files import suffix
from seqloom.data.findings import Finding
from seqloom.data.memory import Layout
from seqloom.data.options import DataOptions
from seqloom.data.rows import Rows as TableRows
from seqloom.data.rows import read_jsonl
from seqloom.data.shapes.shape import RowShape
from seqloom.data.shapes.tagged.doctor import examine_tagged
from seqloom.data.shapes.tagged.reading import JSON, TaggedSource, in_columns, open_tagged, open_untagged
from seqloom.data.shapes.tagged.roles import lacks_columns, tagged_roles
from seqloom.data.shapes.tagged.rows import TaggedRows
from seqloom.data.shapes.tagged.spans import Fields
from seqloom.data.shapes.tagged.vocabulary import TagVocabulary, training_text
from seqloom.tokenizers import Tokenizer, train_tokenizer


class Options(DataOptions):
    roles = {"words": "words", "tags": "tags"}

    column: str = Field("text", min_length=1, description="text column of JSONL files")
    word: int = Field(1, description="word column of CoNLL files, from 1, or from the end: -1 is the last")
    tag: int = Field(-1, description="tag column of CoNLL files")
    words: str = Field("words", min_length=1, description="list of words in JSONL files")
    tags: str = Field("tags", min_length=1, description="list of their tags in JSONL files")
    spans: str = Field("spans", min_length=1, description="list of entities in the text of JSONL files")

    @property
    def fields(self) -> Fields:
        return Fields(self.words, self.tags, self.spans)


class TaggedTokenizerOptions(Strict):
    kind: Literal["words", "characters", "bpe", "pretrained"] = Field(
        "words", description="how words are split into tokens"
    )
    vocabulary: int = Field(30_000, ge=2, le=10**7, description="maximum vocabulary size of words and bpe")
    min_count: int = Field(1, ge=1, description="rarer words (or characters) become <unk>")
    lower: bool = Field(False, description="look up words in lower case; their characters keep their case")


class Tagged(RowShape[Options, TaggedTokenizerOptions, TaggedSource, TaggedRows, TagVocabulary]):
    options = Options
    tokenizer = TaggedTokenizerOptions
    parts = ("words", "tags")

    def layout(self, options: Mapping[str, object], vocabulary: TagVocabulary | None = None) -> Layout:
        return replace(super().layout(options, vocabulary), words=str(options.get("column") or "text"))

    columns = {"words": "words", "tags": "tags", "text": "column", "spans": "spans", "word": "words", "tag": "tags"}
    numbered = {"words": "word", "tags": "tag"}  # of CoNLL files
    echoes = {"words": "words", "wanted": "tags"}
    inputs = frozenset({"words", "column", "word"})

    def open(self, spec: str, options: Options) -> TaggedSource:
        return open_tagged(spec, options.word, options.tag, options.column, options.fields)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return tagged_roles(spec, given, predict)

    def lacks(self, spec: str, names: Mapping[str, object]) -> set[str]:
        return lacks_columns(spec, names) if in_columns(spec) else super().lacks(spec, names)

    def table(self, spec: str, options: Options) -> TableRows | None:
        return read_jsonl(Path(spec)) if suffix(Path(spec)) in JSON and not spec.startswith("sample:") else None

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        return (row._asdict() for row in open_untagged(spec, options.word, options.tag, options.column, options.fields))

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        return (row._asdict() | {"truth": row.tags} for row in self.open(spec, options).rows() if row.tags)

    def examine(self, options: Options) -> list[Finding]:
        return examine_tagged(options.train, options.word, options.tag, options.column, options.valid, options.fields)

    def choose(self, train: TaggedSource, given: Mapping[str, Any]) -> list[Choice]:
        if train.single:
            return [Choice("tokenizer.kind", "characters", "nearly every word is a single character")]
        kind = given.get("tokenizer.kind", "words")
        found = [Choice("tokenizer.kind", kind, "")]
        return (
            [*found, Choice("tokenizer.lower", True, "capitals are read as characters")] if kind == "words" else found
        )

    def make_vocabulary(
        self, options: TaggedTokenizerOptions, train: TaggedSource, known: Tokenizer | None = None
    ) -> TagVocabulary:
        """The characters of words are always included; the task decides whether to read them."""
        texts = (training_text(options.kind, row.words, options.lower) for row in train.rows())
        how = {"size": options.vocabulary, "min_count": options.min_count, "split": "space"}
        tokenizer = known or train_tokenizer(options.kind, texts, **how)  # type: ignore[arg-type]
        letters = train_tokenizer("characters", ("".join(row.words) for row in train.rows()))
        single = all(len(word) == 1 for row in train.rows() for word in row.words)
        facts = {"entities": train.entities, "lower": options.lower, "single": single}
        return TagVocabulary(tokenizer, _tags(train), letters, **facts)

    def load_vocabulary(self, folder: Path) -> TagVocabulary:
        return TagVocabulary.load(folder)

    def prepare(
        self, part: TaggedSource, vocabulary: TagVocabulary, talk: Reporter | None = None, name: str = ""
    ) -> TaggedRows:
        rows = vocabulary.rows(part.rows(), part)
        if rows.unknown == rows.words:
            theirs, ours = (", ".join(map(repr, tags[:3])) for tags in (rows.tags[rows.known :], vocabulary.tags))
            raise UserError(
                f"{part.name}: none of its tags ({theirs}, ...) was in training ({ours}, ...); is it text without "
                "tags, or are they in another column? --columns words=NUMBER,tags=NUMBER"
            )
        return rows

    def check(self, rows: Mapping[str, TaggedRows], vocabulary: TagVocabulary) -> None:
        train = rows["train"]
        if len(vocabulary.tags) < 2:
            raise UserError(
                f"every word of the training set has the tag {quoted(vocabulary.tags[0])}: nothing to learn"
            )
        if vocabulary.unk is not None and 2 * (train.ids == vocabulary.unk).sum() > train.tokens:
            raise UserError(
                "more than half of the training set's words are unknown; raise tokenizer.vocabulary, lower "
                "tokenizer.min_count, or use tokenizer.kind=characters or bpe"
            )

    def describe(self, train: TaggedRows, vocabulary: TagVocabulary) -> str:
        left_out = f" ({train.origin.dropped:,} without words left out)" if train.origin.dropped else ""
        sizes = f"{len(vocabulary.tags)} tags, vocabulary {vocabulary.size:,}"
        return f"{len(train):,} training sentences{left_out}, {train.words:,} words, {train.origin.remark}, {sizes}"


def _tags(train: TaggedSource) -> list[str]:
    """All tags of the training set; for entities, B- and I- of each label, even if only one of them was seen."""
    found = {tag for row in train.rows() for tag in row.tags}
    if not train.entities:
        return sorted(found)
    labels = sorted({tag[2:] for tag in found} - {""})
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


SHAPE = Tagged()
