"""Sentences whose words have tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.shape import Material
from seqloom.data.shapes.tagged.reading import TaggedSource, open_tagged, open_untagged
from seqloom.data.shapes.tagged.rows import TaggedRows
from seqloom.data.shapes.tagged.vocabulary import TagVocabulary, training_text
from seqloom.tokenizers import Tokenizer, train_tokenizer


class Tagged(Material):
    def open(self, spec: str, data: DataConfig) -> TaggedSource:
        return open_tagged(spec, data.word, data.tag, data.column)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        return (row._asdict() for row in open_untagged(spec, data.word, data.tag, data.column))

    def make_tokenizer(self, config: Any, train: TaggedSource, known: Tokenizer | None = None) -> TagVocabulary:
        c = config
        texts = (training_text(c.tokenizer, row.words, c.lower) for row in train.rows())
        how = {"size": c.vocabulary, "min_count": c.min_count, "split": "space"}
        tokenizer, letters = known or train_tokenizer(c.tokenizer, texts, **how), None
        if c.characters != "none":
            letters = train_tokenizer("characters", ("".join(row.words) for row in train.rows()))
        facts = {"entities": train.entities, "lower": c.lower}
        facts["single"] = all(len(word) == 1 for row in train.rows() for word in row.words)
        return TagVocabulary(tokenizer, _tags(train), letters, **facts)

    def load_tokenizer(self, folder: Path) -> TagVocabulary:
        return TagVocabulary.load(folder)

    def prepare(
        self, part: TaggedSource, tokenizer: TagVocabulary, talk: Reporter | None = None, name: str = ""
    ) -> TaggedRows:
        return tokenizer.rows(part.rows(), part)

    def check(self, rows: Mapping[str, TaggedRows], tokenizer: TagVocabulary) -> None:
        train = rows["train"]
        if len(tokenizer.tags) < 2:
            raise UserError(f"every word of the training part has the tag {tokenizer.tags[0]!r}: nothing to learn")
        if 2 * (train.ids == tokenizer.unk).sum() > train.tokens:
            raise UserError(
                "more than half of the training part's words are unknown; raise task.vocabulary, lower "
                "task.min_count, or use task.tokenizer=characters or bpe"
            )

    def describe(self, train: TaggedRows, tokenizer: TagVocabulary) -> str:
        left_out = f" ({train.origin.dropped:,} without a word left out)" if train.origin.dropped else ""
        sizes = f"{len(tokenizer.tags)} tags, vocabulary {tokenizer.size:,}"
        return f"{len(train):,} training sentences{left_out}, {train.words:,} words, {train.origin.remark}, {sizes}"


def _tags(train: TaggedSource) -> list[str]:
    """All tags of the training part; of a name that is seen with one word only, also the tag of further words."""
    found = {tag for row in train.rows() for tag in row.tags}
    if not train.entities:
        return sorted(found)
    labels = sorted({tag[2:] for tag in found} - {""})
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


MATERIAL = Tagged()
