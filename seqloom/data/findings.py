"""Findings of a doctor, and a record of the lines it has seen, in bounded memory."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["ok", "note", "warning", "error"]

SAMPLED_LINES = 200_000  # checksums held at once


@dataclass(frozen=True)
class Finding:
    level: Level
    message: str
    advice: str = ""


def size_finding(size: str, count: int, few: int, small: int, remedy: str, what: str = "a small dataset") -> Finding:
    """Whether there is enough data to learn from."""
    if count < few:
        return Finding("warning", f"{size}: too few to learn from", "expect the model to memorise them")
    if count < small:
        return Finding("note", f"{size}: {what}", f"use a small model, dropout and {remedy}")
    return Finding("ok", size)


def concluded(findings: list[Finding]) -> list[Finding]:
    """The findings, ending with an all-clear if none is a warning or an error."""
    if all(finding.level in ("ok", "note") for finding in findings):
        findings.append(Finding("ok", "no problems found"))
    return findings


@dataclass
class Lines:
    """Lines of the training and validation sets, by checksum: all of them, or an even sample if there are many."""

    train: Counter[int] = field(default_factory=Counter)
    valid: Counter[int] = field(default_factory=Counter)
    every: int = 1

    def add(self, line: str, training: bool) -> None:
        data = line.encode()
        key = zlib.crc32(data) | len(data) << 32
        if key % self.every:
            return
        (self.train if training else self.valid)[key] += 1
        if len(self.train) + len(self.valid) > SAMPLED_LINES:
            self.every *= 2
            self.train, self.valid = (
                Counter({k: n for k, n in part.items() if k % self.every == 0}) for part in (self.train, self.valid)
            )

    def repeated(self) -> float:
        """Share of lines that occurred before."""
        total = self.train.total() + self.valid.total()
        return 1 - len(self.train | self.valid) / total if total else 0.0

    def overlap(self) -> float:
        """Share of the validation set's lines that are also in the training set."""
        total = self.valid.total()
        return sum(n for key, n in self.valid.items() if key in self.train) / total if total else 0.0
