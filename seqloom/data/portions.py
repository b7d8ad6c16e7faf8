"""Portions of rows: splits by a hash of their content, and random subsets.

Any source of rows works that can be re-read from the beginning and rebuilt with fewer rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Protocol, Self, TypeVar

from seqloom.core.errors import UserError
from seqloom.data.split import shares_of


class Divisible(Protocol):
    """Rows that can be re-read and divided."""

    unit: str  # what is never shared by two splits: pairs, passages

    @property
    def name(self) -> str: ...  # what the user typed
    @property
    def bytes(self) -> int: ...
    @property
    def hash(self) -> str: ...

    def rows(self) -> Iterator[Any]: ...

    def all(self) -> Iterator[Any]:
        """Including rows that are left out."""

    def key(self, row: Any) -> str:
        """The text whose hash assigns the row to a split."""

    def like(self, name: str, read: Callable[[], Iterator[Any]]) -> Self:
        """The same source with a subset of the rows of `all`."""


Source = TypeVar("Source", bound=Divisible)


def split_rows(source: Source, valid: float = 0.1, test: float = 0.0) -> dict[str, Source]:
    """Splits of about these shares, by hash: no row is in two; a split of share 0 is left out."""

    def part(name: str) -> Source:
        def read() -> Iterator[Any]:
            return (row for row in source.all() if part_of(source.key(row), valid, test) == name)

        return source.like(f"{source.name} ({name})", read)

    parts = {name: part(name) for name in shares_of(source.unit, valid, test)}
    for name, found in parts.items():
        if next(found.rows(), None) is None:
            raise too_few(source, name)
    return parts


def too_few(source: Divisible, split: str) -> UserError:
    """Rows of one text are never in two splits, so that it is the different ones that count."""
    count = sum(1 for _ in source.rows())
    distinct = len({source.key(row) for row in source.rows()})
    share = "use smaller shares for the others" if split == "train" else "use a larger share"
    way_out = f"add {source.unit}, {share}, or give a separate file"
    if distinct == 1 < count:
        return UserError(f"{source.name}: all {count:,} {source.unit} are alike: no {split} split; add others")
    if distinct < count:
        number = f"only {distinct:,} different {source.unit} among {count:,}, too few"
        return UserError(f"{source.name}: {number} for a {split} split: equal ones stay together; {way_out}")
    return UserError(f"{source.name}: too few {source.unit} ({count:,}) for a {split} split; {way_out}")


def draw_rows(source: Source, amount: int | float, draw: int) -> Source:
    """A random sample of this many rows, or, below 1, of this share of them, in their order; `draw` is the seed. With
    the same seed, a smaller sample is part of a larger one."""
    total = sum(1 for _ in source.rows())
    count = max(1, round(amount * total)) if amount < 1 else int(amount)
    if count > total:
        raise UserError(f"data.examples={count}: {source.name} has only {total:,} rows; ask for fewer")
    chosen = set(Random(draw).sample(range(total), total)[:count])

    def read() -> Iterator[Any]:
        return (row for number, row in enumerate(source.rows()) if number in chosen)

    return source.like(f"{source.name}, {count:,} drawn ({draw})", read)


def draw_by_label(source: Source, count: int, draw: int, label: Callable[[Any], object]) -> Source:
    """A random sample of this many rows of each label, or of all that it has, in their order; `draw` is the seed. With
    the same seed, a smaller sample is part of a larger one."""
    rows: dict[object, list[int]] = {}
    for number, row in enumerate(source.rows()):
        rows.setdefault(label(row), []).append(number)
    chosen = {n for own in rows.values() for n in Random(draw).sample(own, len(own))[:count]}

    def read() -> Iterator[Any]:
        return (row for number, row in enumerate(source.rows()) if number in chosen)

    return source.like(f"{source.name}, {count:,} per label drawn ({draw})", read)


def part_of(key: str, valid: float, test: float) -> str:
    """train, valid or test; depends on the key alone, not on the rest of the file."""
    place = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) / 2**64
    if place < valid:
        return "valid"
    return "test" if place < valid + test else "train"
