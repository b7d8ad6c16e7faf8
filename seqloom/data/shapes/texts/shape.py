"""One running text, or many documents, as a stream of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.shape import Material, prepared
from seqloom.data.split import split_text
from seqloom.data.stream import TokenStream
from seqloom.data.text import Source, open_text
from seqloom.tokenizers import Tokenizer, train_tokenizer


class Texts(Material):
    def open(self, spec: str, data: DataConfig) -> Source:
        return open_text(spec, data.column)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        """Every line that is not empty."""
        lines = (line for piece in open_text(spec, data.column).pieces() for line in piece.splitlines())
        return ({"line": n, "source": line.strip()} for n, line in enumerate(lines, 1) if line.strip())

    def split(self, part: Source, valid: float, test: float) -> dict[str, Source]:
        return split_text(part, valid, test)

    def draw(self, part: Source, count: int, draw: int) -> Source:
        raise UserError(f"data.examples={count}: a text has no rows to draw from; give a shorter text, or leave it out")

    def make_tokenizer(self, config: Any, train: Source, known: Tokenizer | None = None) -> Tokenizer:
        c = config
        if known is not None:
            return known
        return train_tokenizer(c.tokenizer, train.pieces(), size=c.vocabulary, min_count=c.min_count, split=c.split)

    def load_tokenizer(self, folder: Path) -> Tokenizer:
        return Tokenizer.load(folder)

    def prepare(self, part: Source, tokenizer: Tokenizer, talk: Reporter | None = None, name: str = "") -> TokenStream:
        return prepared(part, tokenizer, talk, name)

    def check(self, rows: Mapping[str, TokenStream], tokenizer: Tokenizer) -> None:
        train = rows["train"]
        if (distinct := int((train.counts > 0).sum())) < 2:
            raise UserError(f"the training text has {distinct} distinct token; there is nothing to predict")
        if train.counts[tokenizer.unk] > 0.5 * len(train):
            raise UserError(
                "more than half of the training text is unknown; raise task.vocabulary or lower task.min_count"
            )
        for part, stream in rows.items():
            if len(stream) < 2:
                raise UserError(f"the {part} part has {len(stream)} token; at least 2 are needed")

    def describe(self, train: TokenStream, tokenizer: Tokenizer) -> str:
        return f"{len(train):,} training tokens, vocabulary {tokenizer.size:,}"

    def bytes_per_token(self, train: TokenStream, tokenizer: Tokenizer) -> float | None:
        return None if train.counts[tokenizer.unk] else train.bytes / len(train)


MATERIAL = Texts()
