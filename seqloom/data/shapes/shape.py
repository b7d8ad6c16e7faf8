"""Material: what a task reads, from what the user typed to rows that a model can be trained on.

One file per shape of data, named like the shape. A task says which it reads; nobody else asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.portions import draw_rows, split_rows
from seqloom.data.stream import TokenStream, prepare
from seqloom.data.text import Source
from seqloom.tokenizers import Tokenizer

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

    def split(self, part: Any, valid: float, test: float) -> dict[str, Any]:
        return split_rows(part, valid, test)

    def draw(self, part: Any, count: int, draw: int) -> Any:
        """So many rows of a part, to see what fewer would have taught."""
        return draw_rows(part, count, draw)

    @abstractmethod
    def make_tokenizer(self, config: Any, train: Any, known: Tokenizer | None = None) -> Any:
        """`known`: cuts texts as another run did, instead of what the training part suggests."""

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
        if data.examples:
            parts["train"] = self.draw(parts["train"], data.examples, data.draw)
        return parts | {part: self.open(spec, data) for part, spec in given.items() if spec}

    def prepare_parts(self, parts: Mapping[str, Any], tokenizer: Any, talk: Reporter) -> dict[str, Any]:
        rows = {name: self.prepare(part, tokenizer, talk, name) for name, part in parts.items()}
        self.check(rows, tokenizer)
        return rows


def prepared(source: Source, tokenizer: Tokenizer, talk: Reporter | None, name: str) -> TokenStream:
    """A text as ids; a large one with progress."""
    size, talk = max(1, source.bytes), talk or Silent()

    def progress(done: int) -> None:
        talk.update(min(1.0, done / size), {"preparing": name, "bytes": done})

    return prepare(source, tokenizer, progress=progress if size > _LARGE else None)
