"""Labelled texts: one or two texts per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.columns import whole_rows
from seqloom.data.documents import Documents
from seqloom.data.findings import Finding
from seqloom.data.labels import check_labels
from seqloom.data.options import DataOptions
from seqloom.data.portions import draw_by_label
from seqloom.data.rows import Rows as TableRows
from seqloom.data.shapes.labelled.doctor import examine_labelled
from seqloom.data.shapes.labelled.reading import LabelledSource, open_labelled, open_unlabelled
from seqloom.data.shapes.labelled.roles import labelled_roles
from seqloom.data.shapes.labelled.rows import LabelledRows
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.data.shapes.shape import RowShape, fitted, mostly_unknown, prepared, unknown_among
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import Kind, TokenizerOptions

_FEW_TOKENS = 300_000  # below which words that occur once stay in the vocabulary


class Options(DataOptions):
    roles = {"text": "column", "label": "label", "second": "second"}

    column: str = Field("text", min_length=1, description="text column; a number if the file has no header")
    label: str = Field("label", min_length=1, description="label column; a number if the file has no header")
    second: str | None = Field(None, description="column of a second text, read after the first")
    separator: str | None = Field(
        None, min_length=1, description="separator between the labels of a row; default: one label each"
    )
    per_label: int = Field(0, ge=0, description="train on this many randomly drawn rows of each label; 0: all")

    @model_validator(mode="after")
    def _draw_in_one_way(self) -> Options:
        if self.per_label and self.examples:
            raise ValueError("examples and per_label both say how many rows to draw; give one of them")
        if self.per_label and self.separator is not None:
            raise ValueError("per_label needs rows with one label each; use examples")
        return self


class LabelledTokenizerOptions(TokenizerOptions):
    kind: Kind = Field("words", description="what a token is")
    vocabulary: int = Field(20_000, ge=2, le=10**7, description="maximum vocabulary size of words and bpe")
    min_count: int = Field(2, ge=1, description="rarer characters and words become <unk>")
    lower: bool = Field(False, description="read texts in lower case")


class LabelledTexts(RowShape[Options, LabelledTokenizerOptions, LabelledSource, LabelledRows, LabelledTokenizer]):
    options = Options
    tokenizer = LabelledTokenizerOptions
    parts = ("column", "label")
    columns = {"text": "column", "second": "second", "label": "label"}
    echoes = {"text": "column", "source": "column", "second": "second"}
    beside = {"second": "second"}
    inputs = frozenset({"column", "second"})

    def open(self, spec: str, options: Options) -> LabelledSource:
        return open_labelled(spec, options.column, options.label, options.second, options.separator)

    def drawn_part(self, train: LabelledSource, options: Options) -> LabelledSource:
        if options.per_label:
            return draw_by_label(train, options.per_label, options.draw, lambda row: row.labels[0])
        return super().drawn_part(train, options)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return labelled_roles(spec, given, predict)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        for line, texts in open_unlabelled(spec, options.column, options.second):
            if options.second is not None and len(texts) < 2:
                raise UserError(f"{spec}:{line}: one text, but the run reads two; give a table with both columns")
            yield {"line": line, "source": texts[0]} | ({"second": texts[1]} if len(texts) > 1 else {})

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        part = self.open(spec, options)
        for row in part.rows():
            texts = {"source": row.texts[0]} | ({"second": row.texts[1]} if len(row.texts) > 1 else {})
            yield {"line": row.line, **texts, "truth": set(row.labels) if part.multi else row.labels[0]}

    def table(self, spec: str, options: Options) -> TableRows | None:
        columns = [options.column, options.second] if options.second else [options.column]
        return None if spec.startswith("sample:") else whole_rows(Path(spec), columns)

    def examine(self, options: Options) -> list[Finding]:
        o = options
        return examine_labelled(o.train, o.column, o.label, o.second, o.separator, o.valid)

    def choose(self, train: LabelledSource, given: Mapping[str, Any]) -> list[Choice]:
        survey = train.survey
        reason = survey.script if survey.unspaced else ""
        if not reason and "tokenizer.kind" not in given:
            reason = train.spelling
        kind = given.get("tokenizer.kind", "characters" if reason else "words")
        found = [Choice("tokenizer.kind", kind, reason)]
        few = survey.tokens(kind) < _FEW_TOKENS
        return [*found, Choice("tokenizer.min_count", 1, "few words, so that rare ones count")] if few else found

    def make_vocabulary(
        self, options: LabelledTokenizerOptions, train: LabelledSource, known: Tokenizer | None = None
    ) -> LabelledTokenizer:
        texts = (text.lower() if options.lower else text for row in train.rows() for text in row.texts)
        return LabelledTokenizer(known or fitted(options, texts), sorted(train.labels), train.multi, options.lower)

    def load_vocabulary(self, folder: Path) -> LabelledTokenizer:
        return LabelledTokenizer.load(folder)

    def prepare(
        self, part: LabelledSource, vocabulary: LabelledTokenizer, talk: Reporter | None = None, name: str = ""
    ) -> LabelledRows:
        sides = len(next(part.rows()).texts)
        streams = [prepared(part.side(n, vocabulary.lower), vocabulary.tokenizer, talk, name) for n in range(sides)]
        rows = LabelledRows([Documents(stream, vocabulary.eos) for stream in streams], part, vocabulary.labels)
        if not vocabulary.multi and (wrong := next((n for n in rows.labels if len(n) != 1), None)) is not None:
            raise UserError(
                f"{part.name}: a row has {len(wrong)} labels, but this run was trained on rows with one; give a file "
                "with one label per row"
            )
        return rows

    def check(self, rows: Mapping[str, LabelledRows], vocabulary: LabelledTokenizer) -> None:
        check_labels(rows, vocabulary.labels)
        counts = rows["train"].counts
        if unknown_among(counts, vocabulary.unk) > 0.5 * counts.sum():
            raise mostly_unknown("the training texts", vocabulary.kind)

    def describe(self, train: LabelledRows, vocabulary: LabelledTokenizer) -> str:
        left_out = f" ({train.origin.dropped:,} with an empty text left out)" if train.origin.dropped else ""
        labels = f"{len(vocabulary.labels):,} labels, vocabulary {vocabulary.size:,}"
        return f"{len(train):,} training rows{left_out}, {train.tokens:,} tokens, {labels}"


SHAPE = LabelledTexts()
