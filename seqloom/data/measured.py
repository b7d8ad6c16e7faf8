"""Rows whose count, size and hash are measured in one pass, on first access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar


@dataclass(frozen=True)
class Measures:
    """What one pass over all rows finds."""

    count: int  # rows kept
    dropped: int  # rows left out
    bytes: int  # UTF-8 length of the rows kept
    hash: str  # SHA-256 of the rows kept


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
