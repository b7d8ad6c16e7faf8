"""Rows whose number, size and hash are found by one reading, the first time somebody asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar


@dataclass(frozen=True)
class Measures:
    """What one reading tells of all rows."""

    count: int  # rows that are kept
    dropped: int  # rows that are left out
    bytes: int  # length of what is kept, in UTF-8
    hash: str  # SHA-256 of what is kept


Found = TypeVar("Found", bound=Measures)


class Measured(ABC, Generic[Found]):
    @abstractmethod
    def measure(self) -> Found:
        """Read all rows once."""

    @cached_property
    def measures(self) -> Found:
        return self.measure()

    @property
    def count(self) -> int:
        return self.measures.count

    @property
    def dropped(self) -> int:
        return self.measures.dropped

    @property
    def bytes(self) -> int:
        return self.measures.bytes

    @property
    def hash(self) -> str:
        return self.measures.hash
