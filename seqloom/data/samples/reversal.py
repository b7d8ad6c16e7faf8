"""Random strings of letters and their reversals: a pure test of memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

from seqloom.data.samples.sample import Sample


def reversal() -> Iterator[tuple[str, str]]:
    rng = random.Random(1)
    for _ in range(100_000):
        letters = rng.choices("abcdefghijklmnopqrst", k=40)
        yield " ".join(letters), " ".join(reversed(letters))


SAMPLES = {"reversal": Sample("pairs", "100,000 random strings of 40 letters and their reversals", reversal)}
