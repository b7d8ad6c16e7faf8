"""Portions of rows: parts by a hash of what a row says, and a number of rows drawn by lot.

Any source of rows will do that is read from the beginning as often as needed, and can be made again with fewer rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Protocol, Self, TypeVar

from seqloom.core.errors import UserError
from seqloom.data.split import shares_of


class Divisible(Protocol):
    """Rows that can be read again, as a part of the data."""

    unit: str  # what is never in two parts: pairs, passages

    @property
    def name(self) -> str: ...  # what the user typed
    @property
    def bytes(self) -> int: ...
    @property
    def hash(self) -> str: ...

    def rows(self) -> Iterator[Any]: ...

    def all(self) -> Iterator[Any]:
        """Also those that are left out."""

    def key(self, row: Any) -> str:
        """What decides the part of a row."""

    def like(self, name: str, read: Callable[[], Iterator[Any]]) -> Self:
        """The same with other rows, of those that `all` gives."""


Source = TypeVar("Source", bound=Divisible)


def split_rows(source: Source, valid: float = 0.1, test: float = 0.0) -> dict[str, Source]:
    """Parts of about these shares, by a hash: no row is in two; a part of share 0 is left out."""

    def part(name: str) -> Source:
        def read() -> Iterator[Any]:
            return (row for row in source.all() if part_of(source.key(row), valid, test) == name)

        return source.like(f"{source.name} ({name})", read)

    parts = {name: part(name) for name in shares_of(source.unit, valid, test)}
    for name, found in parts.items():
        if next(found.rows(), None) is None:
            there = len({source.key(row) for row in source.rows()})
            way_out = f"give more {source.unit}, a larger share, or a file of its own"
            raise UserError(f"{source.name}: too few {source.unit} ({there:,}) for a {name} part; {way_out}")
    return parts


def draw_rows(source: Source, count: int, draw: int) -> Source:
    """So many of its rows, in their order; another `draw` gives others."""
    there = sum(1 for _ in source.rows())
    if count > there:
        raise UserError(f"data.examples={count}: {source.name} has {there:,}")
    chosen = set(Random(draw).sample(range(there), count))

    def read() -> Iterator[Any]:
        return (row for number, row in enumerate(source.rows()) if number in chosen)

    return source.like(f"{source.name}, {count:,} drawn ({draw})", read)


def part_of(key: str, valid: float, test: float) -> str:
    """Where it belongs, whatever else is in the file: train, valid or test."""
    place = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) / 2**64
    if place < valid:
        return "valid"
    return "test" if place < valid + test else "train"
