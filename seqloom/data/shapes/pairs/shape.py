"""Pairs of texts: a source and its target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.findings import Finding
from seqloom.data.options import DataOptions
from seqloom.data.rows import Rows as TableRows
from seqloom.data.shapes.pairs.doctor import examine_pairs
from seqloom.data.shapes.pairs.reading import PairSource, open_pairs, open_rows, open_sources
from seqloom.data.shapes.pairs.roles import pair_roles
from seqloom.data.shapes.pairs.rows import PairRows
from seqloom.data.shapes.pairs.vocabulary import TokenizerPair
from seqloom.data.shapes.shape import RowShape, fitted, mostly_unknown, prepared, unknown_among
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import Kind, TokenizerOptions

_SMALL_VOCABULARY, _LARGE_VOCABULARY, _MANY = 4000, 8000, 200_000  # sub-words; pairs from which there are more
_VALIDATED, _LEAST_SHARE = 1000, 0.02  # pairs that are enough to validate on, but at least this share


class Options(DataOptions):
    roles = {"source": "source", "target": "target"}

    source: str = Field("source", min_length=1, description="source column; a number if the file has no header")
    target: str = Field("target", min_length=1, description="target column; a number if the file has no header")


class PairTokenizerOptions(TokenizerOptions):
    kind: Kind = Field("bpe", description="what a token is")
    vocabulary: int = Field(8000, ge=2, le=10**7, description="maximum vocabulary size of words and bpe")
    target_kind: Kind | None = Field(None, description="what a target token is; default: as for the source")
    target_vocabulary: int = Field(
        0, ge=0, le=10**7, description="maximum target vocabulary size; 0: as for the source"
    )
    joint: bool = Field(False, description="share one vocabulary between source and target")

    @property
    def of_target(self) -> TokenizerOptions:
        changed = {"kind": self.target_kind or self.kind, "vocabulary": self.target_vocabulary or self.vocabulary}
        return self.model_copy(update=changed)


class Pairs(RowShape[Options, PairTokenizerOptions, PairSource, PairRows, TokenizerPair]):
    options = Options
    tokenizer = PairTokenizerOptions
    parts = ("source", "target")
    columns = {"source": "source", "target": "target"}
    echoes = {"source": "source", "target": "target"}
    inputs = frozenset({"source"})

    def open(self, spec: str, options: Options) -> PairSource:
        return open_pairs(spec, options.source, options.target)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return pair_roles(spec, given, predict)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        rows = open_sources(spec, options.source, options.target).with_targets()
        return ({"line": n, "source": source} | ({"target": target} if target else {}) for n, source, target in rows)

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        return (row | {"truth": row["target"]} for row in self.sources(spec, options) if "target" in row)

    def table(self, spec: str, options: Options) -> TableRows | None:
        return open_rows(spec, options.source)

    def examine(self, options: Options) -> list[Finding]:
        return examine_pairs(options.train, options.source, options.target, options.valid)

    def choose(self, train: PairSource, given: Mapping[str, Any]) -> list[Choice]:
        """Sub-words where words are separated by spaces, else characters; one vocabulary for two such languages. Less
        than a tenth to validate on, because every pair teaches something."""
        source, target = train.surveys
        kinds = ["characters" if side.unspaced or side.single else "bpe" for side in (source, target)]
        if given.get("tokenizer.kind") == "pretrained":
            return self._held_out(train, given)
        if "tokenizer.kind" in given or kinds == ["bpe", "bpe"]:
            found = [Choice("tokenizer.kind", "bpe", "")]
        else:
            script = f"source: {source.script}; target: {target.script}"
            found = [Choice("tokenizer.kind", kinds[0], script), Choice("tokenizer.target_kind", kinds[1], script)]
        size = _LARGE_VOCABULARY if train.count > _MANY else _SMALL_VOCABULARY
        found.append(Choice("tokenizer.vocabulary", size, f"{train.count:,} pairs"))
        if kinds == ["bpe", "bpe"] and "tokenizer.target_kind" not in given:
            found.append(Choice("tokenizer.joint", True, "both sides are written with spaces"))
        return found + self._held_out(train, given)

    def _held_out(self, train: PairSource, given: Mapping[str, Any]) -> list[Choice]:
        share = max(_LEAST_SHARE, _VALIDATED / max(1, train.count))
        if given.get("data.valid") or share >= Options.model_fields["valid_fraction"].default:
            return []
        return [Choice("data.valid_fraction", round(share, 3), f"{train.count:,} pairs")]

    def make_vocabulary(
        self, options: PairTokenizerOptions, train: PairSource, known: Tokenizer | None = None
    ) -> TokenizerPair:
        source, target = train.side("source"), train.side("target")
        if known is not None:
            return TokenizerPair(known, known)
        if options.joint:
            both = fitted(options, chain(source.pieces(), target.pieces()))
            return TokenizerPair(both, both)
        return TokenizerPair(fitted(options, source.pieces()), fitted(options.of_target, target.pieces()))

    def load_vocabulary(self, folder: Path) -> TokenizerPair:
        return TokenizerPair.load(folder)

    def prepare(
        self, part: PairSource, vocabulary: TokenizerPair, talk: Reporter | None = None, name: str = ""
    ) -> PairRows:
        source = prepared(part.side("source"), vocabulary.source, talk, f"{name}, source")
        target = prepared(part.side("target"), vocabulary.target, talk, f"{name}, target")
        return PairRows(source, target, (vocabulary.source.eos, vocabulary.target.eos), part)

    def check(self, rows: Mapping[str, PairRows], vocabulary: TokenizerPair) -> None:
        source, target = rows["train"].counts
        for side, counts, own in (("source", source, vocabulary.source), ("target", target, vocabulary.target)):
            if unknown_among(counts, own.unk) > 0.5 * counts.sum():
                raise mostly_unknown(f"the training set's {side}", own.kind)
        for part, pairs in rows.items():
            if not len(pairs):
                raise UserError(f"the {part} split has no pairs")

    def describe(self, train: PairRows, vocabulary: TokenizerPair) -> str:
        left_out = f" ({train.origin.dropped:,} with an empty side left out)" if train.origin.dropped else ""
        source = "" if vocabulary.joint else f"{vocabulary.source.size:,} and "
        sizes = f"{source}{vocabulary.target.size:,}"
        return f"{len(train):,} training pairs{left_out}, {train.tokens:,} target tokens, vocabulary {sizes}"


SHAPE = Pairs()
