"""Material: what a task reads, from what the user typed to rows that a model can be trained on.

One class per shape of data. A task says which it reads; nobody else asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from seqloom.core.errors import UserError
from seqloom.core.run import DataConfig
from seqloom.core.task import Row, TaskConfig
from seqloom.data.paired import PairRows
from seqloom.data.pairs import PairSource, open_pairs, open_sources, split_pairs
from seqloom.data.split import split_text
from seqloom.data.stream import TokenStream, prepare
from seqloom.data.text import Source, open_text
from seqloom.tokenizers import Tokenizer, train_tokenizer
from seqloom.tokenizers.pair import TokenizerPair
from seqloom.train.progress import Reporter, Silent

_LARGE = 10_000_000  # bytes of text whose preparation is worth a line


class Part(Protocol):
    """A part of the data: known by its content."""

    name: str

    @property
    def bytes(self) -> int: ...
    @property
    def hash(self) -> str: ...


class Vocabulary(Protocol):
    kind: Any
    size: int
    hash: str

    def files(self) -> dict[str, bytes]: ...


class Material(ABC):
    @abstractmethod
    def open(self, spec: str, data: DataConfig) -> Any:
        """The part behind a name; `data` says how to read it."""

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        """Rows to predict from: {"line": 1, "source": "...", "target": "..."}, the target where there is one."""
        raise UserError(f"{spec}: this task does not read sources")

    @abstractmethod
    def split(self, part: Any, valid: float, test: float) -> dict[str, Any]: ...

    @abstractmethod
    def make_tokenizer(self, config: Any, train: Any) -> Any: ...

    @abstractmethod
    def load_tokenizer(self, folder: Path) -> Any: ...

    @abstractmethod
    def prepare(self, part: Any, tokenizer: Any, talk: Reporter | None = None, name: str = "") -> Any:
        """Rows, from the cache when it has been done before; with progress where it takes long."""

    @abstractmethod
    def check(self, rows: Mapping[str, Any], tokenizer: Any) -> None:
        """Refuse what there is nothing to learn from."""

    @abstractmethod
    def describe(self, train: Any, tokenizer: Any) -> str: ...

    def bytes_per_token(self, train: Any, tokenizer: Any) -> float | None:
        """None where bits per byte would mean nothing."""
        return None

    def open_parts(self, data: DataConfig) -> dict[str, Any]:
        """The train, valid and test parts: as given, or set aside from the training part."""
        whole = self.open(data.train, data)
        given = {"valid": data.valid, "test": data.test}
        share = {"valid": data.valid_fraction, "test": data.test_fraction}
        shares = {part: 0.0 if given[part] else share[part] for part in given}
        parts = self.split(whole, **shares) if any(shares.values()) else {"train": whole}
        return parts | {part: self.open(spec, data) for part, spec in given.items() if spec}

    def prepare_parts(self, parts: Mapping[str, Any], tokenizer: Any, talk: Reporter) -> dict[str, Any]:
        rows = {name: self.prepare(part, tokenizer, talk, name) for name, part in parts.items()}
        self.check(rows, tokenizer)
        return rows


class Texts(Material):
    """One running text, or many documents, as a stream of tokens."""

    def open(self, spec: str, data: DataConfig) -> Source:
        return open_text(spec, data.column)

    def split(self, part: Source, valid: float, test: float) -> dict[str, Source]:
        return split_text(part, valid, test)

    def make_tokenizer(self, config: Any, train: Source) -> Tokenizer:
        c = config
        return train_tokenizer(c.tokenizer, train.pieces(), size=c.vocabulary, min_count=c.min_count, split=c.split)

    def load_tokenizer(self, folder: Path) -> Tokenizer:
        return Tokenizer.load(folder)

    def prepare(self, part: Source, tokenizer: Tokenizer, talk: Reporter | None = None, name: str = "") -> TokenStream:
        return _prepared(part, tokenizer, talk, name)

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


class Pairs(Material):
    """Pairs of texts: what is given, and what is wanted for it."""

    def open(self, spec: str, data: DataConfig) -> PairSource:
        return open_pairs(spec, data.source, data.target)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        rows = open_sources(spec, data.source, data.target).answered()
        return ({"line": n, "source": source} | ({"target": target} if target else {}) for n, source, target in rows)

    def split(self, part: PairSource, valid: float, test: float) -> dict[str, PairSource]:
        return split_pairs(part, valid, test)

    def make_tokenizer(self, config: Any, train: PairSource) -> TokenizerPair:
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
        source = _prepared(part.side("source"), tokenizer.source, talk, f"{name}, source")
        target = _prepared(part.side("target"), tokenizer.target, talk, f"{name}, target")
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


MATERIALS: dict[str, Material] = {"text": Texts(), "pairs": Pairs()}


def material_of(task: TaskConfig) -> Material:
    return MATERIALS[task.reads]


def _prepared(source: Source, tokenizer: Tokenizer, talk: Reporter | None, name: str) -> TokenStream:
    size, talk = max(1, source.bytes), talk or Silent()

    def progress(done: int) -> None:
        talk.update(min(1.0, done / size), {"preparing": name, "bytes": done})

    return prepare(source, tokenizer, progress=progress if size > _LARGE else None)
