"""One running text, or many documents, as a stream of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.findings import Finding
from seqloom.data.options import DataOptions
from seqloom.data.roles import text_roles
from seqloom.data.shapes.shape import Shape, fitted, prepared, unknown_among
from seqloom.data.shapes.texts.doctor import examine_text
from seqloom.data.split import draw_text, split_text
from seqloom.data.stream import TokenStream
from seqloom.data.text import Source, open_text
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import TokenizerOptions


class Options(DataOptions):
    column: str = Field("text", min_length=1, description="text column of JSONL, CSV and TSV files")


class Texts(Shape[Options, TokenizerOptions, Source, TokenStream, Tokenizer]):
    options = Options
    tokenizer = TokenizerOptions
    parts = ("column",)
    columns = {"text": "column"}
    inputs = frozenset({"column"})

    def open(self, spec: str, options: Options) -> Source:
        return open_text(spec, options.column)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return text_roles(spec, given)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        """Every line that is not empty."""
        lines = (line for piece in open_text(spec, options.column).pieces() for line in piece.splitlines())
        return ({"line": n, "source": line.strip()} for n, line in enumerate(lines, 1) if line.strip())

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        return (row | {"truth": None} for row in self.sources(spec, options))

    def examine(self, options: Options) -> list[Finding]:
        return examine_text(options.train, options.column, options.valid_fraction, options.valid)

    def split(self, part: Source, valid: float, test: float) -> dict[str, Source]:
        return split_text(part, valid, test)

    def draw(self, part: Source, amount: int | float, draw: int) -> Source:
        if amount >= 1:
            raise UserError(f"data.examples={amount}: a text has no rows to draw; give a share below 1, such as 0.5")
        return draw_text(part, amount, draw)

    def make_vocabulary(self, options: TokenizerOptions, train: Source, known: Tokenizer | None = None) -> Tokenizer:
        return known or fitted(options, train.pieces())

    def load_vocabulary(self, folder: Path) -> Tokenizer:
        return Tokenizer.load(folder)

    def prepare(self, part: Source, vocabulary: Tokenizer, talk: Reporter | None = None, name: str = "") -> TokenStream:
        return prepared(part, vocabulary, talk, name)

    def check(self, rows: Mapping[str, TokenStream], vocabulary: Tokenizer) -> None:
        train = rows["train"]
        if (distinct := int((train.counts > 0).sum())) < 2:
            raise UserError(f"the training text has {distinct} distinct token; there is nothing to predict")
        if unknown_among(train.counts, vocabulary.unk) > 0.5 * len(train):
            raise UserError(
                "more than half of the training tokens are unknown; raise tokenizer.vocabulary or lower "
                "tokenizer.min_count"
            )
        for part, stream in rows.items():
            if len(stream) < 2:
                own = "" if part == "train" else f", or a file of its own with --{part}"
                raise UserError(f"the {part} split has {len(stream)} token, and needs 2 or more: give more text{own}")

    def describe(self, train: TokenStream, vocabulary: Tokenizer) -> str:
        return f"{len(train):,} training tokens, vocabulary {vocabulary.size:,}"

    def bytes_per_token(self, train: TokenStream, vocabulary: Tokenizer) -> float | None:
        return None if unknown_among(train.counts, vocabulary.unk) else train.bytes / len(train)


SHAPE = Texts()
