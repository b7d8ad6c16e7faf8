"""Texts with labels: one text in a row, or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.run import DataConfig
from seqloom.core.task import Row
from seqloom.data.labelled import LabelledSource, open_labelled, open_unlabelled
from seqloom.data.paired import Documents
from seqloom.materials.material import Material, prepared
from seqloom.tokenizers import Tokenizer, train_tokenizer
from seqloom.tokenizers.labelled import LabelledTokenizer
from seqloom.train.progress import Reporter


class LabelledRows:
    """What a classifier learns from: ids of each text, and the numbers of its labels (-1: unknown to training)."""

    def __init__(self, sides: list[Documents], origin: LabelledSource, labels: list[str]) -> None:
        self.origin, self._sides = origin, sides
        self.lengths = 1 + np.sum([side.lengths for side in sides], axis=0)  # with a mark at the beginning
        number = {label: n for n, label in enumerate(labels)}
        self.labels = [[number.get(label, -1) for label in row.labels] for row in origin.rows()]
        self.unknown = Counter({label: n for label, n in origin.labels.items() if label not in number})
        self.bytes = sum(side.stream.bytes for side in sides)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def counts(self) -> np.ndarray:
        """How often each id occurs."""
        return sum((side.stream.counts for side in self._sides[1:]), start=self._sides[0].stream.counts)

    def parts(self, row: int) -> list[np.ndarray]:
        """The ids of one text or two, each with its end."""
        return [side[row] for side in self._sides]

    def texts(self) -> Iterator[tuple[str, ...]]:
        return (row.texts for row in self.origin.rows())


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


def check_labels(labels: list[str]) -> None:
    if len(labels) < 2:
        only = f"only the label {labels[0]!r}" if labels else "no label"
        raise UserError(f"the training part has {only}; there is nothing to tell apart")


MATERIAL = LabelledTexts()
