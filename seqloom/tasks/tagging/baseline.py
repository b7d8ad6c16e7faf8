"""The naive baseline: each word's most frequent tag, and the most frequent tag of all for words not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from seqloom.core.rows import Facts

_MOST_WORDS = 100_000  # that are counted


def count_tags(sentences: Iterable[Any]) -> Facts:
    """The most frequent tag overall, and that of each word where it differs.

    Ties go to the tag that is more frequent overall, then to the first in alphabetical order.
    """
    counts: dict[str, Counter[str]] = {}
    every: Counter[str] = Counter()
    for sentence in sentences:
        every.update(sentence.tags)
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if len(counts) < _MOST_WORDS or word in counts:
                counts.setdefault(word, Counter())[tag] += 1
    other = _most_common(every, every)
    known = {word: _most_common(tags, every) for word, tags in counts.items()}
    return {"other": other, "words": {word: tag for word, tag in known.items() if tag != other}}


def frequent_tags(words: Iterable[str], naive: Facts) -> list[str]:
    return [naive["words"].get(word, naive["other"]) for word in words]


def _most_common(counts: Counter[str], every: Counter[str]) -> str:
    return min(counts, key=lambda tag: (-counts[tag], -every[tag], tag))
