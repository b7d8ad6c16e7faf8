"""Texts with labels: one text in a row, or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.documents import Documents
from seqloom.data.labels import check_labels
from seqloom.data.options import DataConfig
from seqloom.data.shapes.labelled.reading import LabelledSource, open_labelled, open_unlabelled
from seqloom.data.shapes.labelled.rows import LabelledRows
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.data.shapes.shape import Material, prepared
from seqloom.tokenizers import Tokenizer, train_tokenizer


class LabelledTexts(Material):
    def open(self, spec: str, data: DataConfig) -> LabelledSource:
        return open_labelled(spec, data.column, data.label, data.second, data.separator)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        for line, texts in open_unlabelled(spec, data.column, data.second):
            yield {"line": line, "source": texts[0]} | ({"second": texts[1]} if len(texts) > 1 else {})

    def make_tokenizer(self, config: Any, train: LabelledSource, known: Tokenizer | None = None) -> LabelledTokenizer:
        c = config
        texts = (text for row in train.rows() for text in row.texts)
        own = known or train_tokenizer(c.tokenizer, texts, size=c.vocabulary, min_count=c.min_count, split=c.split)
        return LabelledTokenizer(own, sorted(train.labels), train.multi)

    def load_tokenizer(self, folder: Path) -> LabelledTokenizer:
        return LabelledTokenizer.load(folder)

    def prepare(
        self, part: LabelledSource, tokenizer: LabelledTokenizer, talk: Reporter | None = None, name: str = ""
    ) -> LabelledRows:
        sides = len(next(part.rows()).texts)
        streams = [prepared(part.side(n), tokenizer.tokenizer, talk, name) for n in range(sides)]
        return LabelledRows([Documents(stream, tokenizer.eos) for stream in streams], part, tokenizer.labels)

    def check(self, rows: Mapping[str, LabelledRows], tokenizer: LabelledTokenizer) -> None:
        check_labels(tokenizer.labels)
        counts = rows["train"].counts
        if counts[tokenizer.unk] > 0.5 * counts.sum():
            raise UserError(
                "more than half of the training texts is unknown; raise task.vocabulary, lower task.min_count, or use "
                "task.tokenizer=bpe"
            )

    def describe(self, train: LabelledRows, tokenizer: LabelledTokenizer) -> str:
        left_out = f" ({train.origin.dropped:,} with an empty text left out)" if train.origin.dropped else ""
        labels = f"{len(tokenizer.labels):,} labels, vocabulary {tokenizer.size:,}"
        return f"{len(train):,} training rows{left_out}, {train.tokens:,} tokens, {labels}"


MATERIAL = LabelledTexts()
