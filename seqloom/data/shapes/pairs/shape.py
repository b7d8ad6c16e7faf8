"""Pairs of texts: what is given, and what is wanted for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.pairs.reading import PairSource, open_pairs, open_sources
from seqloom.data.shapes.pairs.rows import PairRows
from seqloom.data.shapes.pairs.vocabulary import TokenizerPair
from seqloom.data.shapes.shape import Material, prepared
from seqloom.tokenizers import Tokenizer, train_tokenizer


class Pairs(Material):
    def open(self, spec: str, data: DataConfig) -> PairSource:
        return open_pairs(spec, data.source, data.target)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        rows = open_sources(spec, data.source, data.target).answered()
        return ({"line": n, "source": source} | ({"target": target} if target else {}) for n, source, target in rows)

    def make_tokenizer(self, config: Any, train: PairSource, known: Tokenizer | None = None) -> TokenizerPair:
        if known is not None:
            return TokenizerPair(known, known)
        c, (source, target) = config, (train.side("source"), train.side("target"))
        how = {"min_count": c.min_count, "split": c.split}
        if c.joint:
            texts = (piece for side in (source, target) for piece in side.pieces())
            both = train_tokenizer(c.tokenizer, texts, size=c.vocabulary, **how)
            return TokenizerPair(both, both)
        kinds = c.tokenizer, c.target_tokenizer or c.tokenizer
        sizes = c.vocabulary, c.target_vocabulary or c.vocabulary
        return TokenizerPair(
            train_tokenizer(kinds[0], source.pieces(), size=sizes[0], **how),
            train_tokenizer(kinds[1], target.pieces(), size=sizes[1], **how),
        )

    def load_tokenizer(self, folder: Path) -> TokenizerPair:
        return TokenizerPair.load(folder)

    def prepare(self, part: PairSource, tokenizer: TokenizerPair, talk: Reporter | None = None, name: str = "") -> Any:
        source = prepared(part.side("source"), tokenizer.source, talk, f"{name}, source")
        target = prepared(part.side("target"), tokenizer.target, talk, f"{name}, target")
        return PairRows(source, target, (tokenizer.source.eos, tokenizer.target.eos), part)

    def check(self, rows: Mapping[str, PairRows], tokenizer: TokenizerPair) -> None:
        source, target = rows["train"].counts
        for side, counts, own in (("source", source, tokenizer.source), ("target", target, tokenizer.target)):
            if counts[own.unk] > 0.5 * counts.sum():
                raise UserError(
                    f"more than half of the training part's {side} is unknown; raise task.vocabulary, lower "
                    "task.min_count, or use task.tokenizer=bpe"
                )
        for part, pairs in rows.items():
            if not len(pairs):
                raise UserError(f"the {part} part has no pairs")

    def describe(self, train: PairRows, tokenizer: TokenizerPair) -> str:
        left_out = f" ({train.origin.dropped:,} with an empty side left out)" if train.origin.dropped else ""
        sizes = f"{tokenizer.target.size:,}" if tokenizer.joint else f"{tokenizer.source.size:,} and "
        sizes += "" if tokenizer.joint else f"{tokenizer.target.size:,}"
        return f"{len(train):,} training pairs{left_out}, {train.tokens:,} target tokens, vocabulary {sizes}"


MATERIAL = Pairs()
