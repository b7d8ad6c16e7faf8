"""Strings of letters and the same strings backwards: nothing to learn but to remember."""

from __future__ import annotations

import random
from collections.abc import Iterator

from seqloom.data.samples.sample import Sample


def reversal() -> Iterator[tuple[str, str]]:
    chosen = random.Random(1)
    for _ in range(100_000):
        letters = chosen.choices("abcdefghijklmnopqrst", k=40)
        yield " ".join(letters), " ".join(reversed(letters))


SAMPLES = {"reversal": Sample("pairs", "100,000 random strings of 40 letters, and each backwards", reversal)}
