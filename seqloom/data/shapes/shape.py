"""Shape: one shape of data, from what the user typed to rows that a model can be trained on.

One folder per shape, of the same name. A task names the shape it reads; nothing else needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from seqloom.core.choice import Choice
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.core.quoting import quoted
from seqloom.core.rows import Part, Row, Rows, Vocabulary
from seqloom.data.findings import Finding
from seqloom.data.memory import Layout
from seqloom.data.options import DataOptions
from seqloom.data.peek import lacking
from seqloom.data.portions import Divisible, draw_rows, split_rows
from seqloom.data.role_names import flag
from seqloom.data.rows import Rows as TableRows
from seqloom.data.stream import TokenStream, prepare
from seqloom.data.text import Source
from seqloom.tokenizers import Tokenizer, train_tokenizer
from seqloom.tokenizers.options import NoTokenizer, TokenizerOptions

_LARGE = 10_000_000  # bytes of text from which preparation shows progress

O = TypeVar("O", bound=DataOptions)  # noqa: E741
T = TypeVar("T", bound=Strict)
P = TypeVar("P", bound=Part)
R = TypeVar("R", bound=Rows)
V = TypeVar("V", bound=Vocabulary)


class Shape(ABC, Generic[O, T, P, R, V]):
    """`options`: class of its data section; `tokenizer`: class of its tokenizer section."""

    options: ClassVar[type[DataOptions]]
    tokenizer: ClassVar[type[Strict]] = NoTokenizer
    columns: ClassVar[Mapping[str, str]] = {}  # role of a column, as the user names it: the data option that it sets
    numbered: ClassVar[Mapping[str, str]] = {}  # option of a column's name: the option that is set by a number instead
    echoes: ClassVar[Mapping[str, str]] = {}  # field of a prediction that repeats a column: its option, or name
    inputs: ClassVar[frozenset[str]] = frozenset()  # options of columns that a prediction needs
    beside: ClassVar[Mapping[str, str]] = {}  # role of a text that is read together with another one: its option
    parts: ClassVar[tuple[str, ...]] = ()  # data options that name the columns of an example, the input first
    counted: ClassVar[Literal["tokens", "points", "examples"]] = "tokens"  # unit of an amount of data
    drawn: ClassVar[bool] = True  # a share of it depends on the random seed

    def layout(self, options: Mapping[str, object], vocabulary: V | None = None) -> Layout:
        """How data in memory becomes columns; `options`: those of the data section that are known; `vocabulary`: of
        the run that the data is for, if it is trained."""
        return Layout([str(options.get(name) or self.options.model_fields[name].default) for name in self.parts])

    @abstractmethod
    def open(self, spec: str, options: O) -> P:
        """The data named by `spec`, read according to `options`."""

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        """Columns and the like, found from the file, for data options that are not among those the user gave.

        None where the defaults fit; raises a question where several could be meant. What cannot be read at all is left
        to `open`, which says why. `predict`: only what a prediction needs.
        """
        return []

    def lacks(self, spec: str, names: Mapping[str, object]) -> set[str]:
        """The options, of those that name these columns, whose column the file does not have."""
        return lacking(spec, names)

    def elsewhere(
        self, spec: str, trained: O, given: Mapping[str, object], vocabulary: V, predict: bool = False
    ) -> dict[str, object]:
        """Data options for a file without some of the columns of training: those found in it by the rules of `roles`.

        `given`: options that the user gave for this file; `predict`: only what a prediction needs.
        """
        before, own = trained.model_dump(), dict.fromkeys((*self.columns.values(), *self.numbered.values()))
        names = {option: before[option] for option in own if option not in given and before[option] is not None}
        gone = self.lacks(spec, names)
        if not (gone & self.inputs if predict else gone):
            return {}
        fields = self.options.model_fields
        kept = {o: v for o, v in names.items() if o not in gone and v != fields[o].default}
        choices = self.roles(spec, {**kept, **given}, predict)
        found = {choice.path.removeprefix("data."): choice.value for choice in choices}
        if lost := [o for o in gone - found.keys() if fields[o].default is None]:
            role = next(role for role, option in self.columns.items() if option == lost[0])
            raise UserError(f"{spec}: no column {quoted(names[lost[0]])}, which the run reads; say which: {flag(role)}")
        return {option: fields[option].default for option in names if option in gone} | found

    def table(self, spec: str, options: O) -> TableRows | None:
        """The rows of a table that `sources` reads row by row, with all columns; None: no such table."""
        return None

    def holds(self, spec: str) -> bool:
        """Whether this is certainly data of this shape."""
        return False

    def choose(self, train: P, given: Mapping[str, Any]) -> list[Choice]:
        """Settings of the tokenizer that suit this training set; `given`: settings by path."""
        return []

    @abstractmethod
    def sources(self, spec: str, options: O) -> Iterator[Row]:
        """Rows to predict from: {"line": 1, "source": "...", "target": "..."}, with the target if known."""

    def answered(self, spec: str, options: O) -> Iterator[Row]:
        """The rows of `sources` whose true answer is known, with it as "truth": a text, a list with one for each
        output, a set of those that hold, or None where a text is its own answer."""
        raise UserError(f"{spec}: rows of this kind have no single answer to compare a prediction with")

    @abstractmethod
    def examine(self, options: O) -> list[Finding]:
        """Findings on the data, before any training (`seqloom doctor`)."""

    @abstractmethod
    def make_vocabulary(self, options: T, train: P, known: Tokenizer | None = None) -> V:
        """Fitted to the training set; `known`: the tokenizer of another run, used instead of a new one."""

    @abstractmethod
    def load_vocabulary(self, folder: Path) -> V: ...

    @abstractmethod
    def prepare(self, part: P, vocabulary: V, talk: Reporter | None = None, name: str = "") -> R:
        """Rows, from the cache if prepared before; reports progress if it takes long."""

    @abstractmethod
    def check(self, rows: Mapping[str, R], vocabulary: V) -> None:
        """Refuse data with nothing to learn."""

    @abstractmethod
    def describe(self, train: R, vocabulary: V) -> str: ...

    @abstractmethod
    def split(self, part: P, valid: float, test: float) -> dict[str, P]: ...

    @abstractmethod
    def draw(self, part: P, amount: int | float, draw: int) -> P:
        """A sample of this many rows, or, below 1, of this share of the part, with seed `draw`; nested by amount."""

    def amount(self, rows: R) -> int:
        """How much data this is, in the unit `counted`."""
        return rows.tokens

    def bytes_per_token(self, train: R, vocabulary: V) -> float | None:
        """None where bits per byte would be meaningless."""
        return None

    def open_parts(self, options: O) -> dict[str, P]:
        """The train, valid and test splits: from files of their own, or held out from train."""
        whole, given = self.open(options.train, options), options.held_out
        share = {"valid": options.valid_fraction, "test": options.test_fraction}
        shares = {part: 0.0 if part in given else share[part] for part in share}
        parts = self.split(whole, **shares) if any(shares.values()) else {"train": whole}
        parts["train"] = self.drawn_part(parts["train"], options)
        return parts | {part: self.open(spec, options) for part, spec in given.items()}

    def drawn_part(self, train: P, options: O) -> P:
        """As much of the training set as the options ask for."""
        return self.draw(train, options.examples, options.draw) if options.examples else train

    def prepare_parts(self, parts: Mapping[str, P], vocabulary: V, talk: Reporter) -> dict[str, R]:
        rows = {name: self.prepare(part, vocabulary, talk, name) for name, part in parts.items()}
        self.check(rows, vocabulary)
        return rows


AnyShape = Shape[Any, Any, Any, Any, Any]
D = TypeVar("D", bound=Divisible)


class RowShape(Shape[O, T, D, R, V]):
    """A shape whose rows can be split one by one."""

    counted = "examples"

    def split(self, part: D, valid: float, test: float) -> dict[str, D]:
        return split_rows(part, valid, test)

    def draw(self, part: D, amount: int | float, draw: int) -> D:
        return draw_rows(part, amount, draw)

    def amount(self, rows: R) -> int:
        return len(rows)


def fitted(options: TokenizerOptions, texts: Iterator[str]) -> Tokenizer:
    """A new tokenizer fitted to these texts."""
    how = {"size": options.vocabulary, "min_count": options.min_count, "split": options.split}
    return train_tokenizer(options.kind, texts, **how)  # type: ignore[arg-type]


def prepared(source: Source, tokenizer: Tokenizer, talk: Reporter | None, name: str) -> TokenStream:
    """A text as token ids; reports progress if it is large."""
    size, talk = max(1, source.bytes), talk or Silent()

    def progress(done: int) -> None:
        talk.update(min(1.0, done / size), {"preparing": name, "bytes": done})

    return prepare(source, tokenizer, progress=progress if size > _LARGE else None)


def unknown_among(counts: np.ndarray, unk: int | None) -> int:
    """How many tokens stand for unknown text."""
    return 0 if unk is None else int(counts[unk])


def mostly_unknown(what: str, kind: str) -> UserError:
    """`kind`: of the tokenizer; one that came with pretrained weights cannot be changed."""
    if kind == "pretrained":
        return UserError(
            f"more than half of the tokens in {what} are unknown to the tokenizer of the pretrained weights, which may "
            "be for another language; start from other weights, or leave --from out"
        )
    return UserError(
        f"more than half of the tokens in {what} are unknown; raise tokenizer.vocabulary, lower tokenizer.min_count, "
        "or use tokenizer.kind=bpe"
    )
