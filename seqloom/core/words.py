"""Where words begin and end in a plain text, by one rule for all who cut: no dictionary, no language.

A Chinese or Japanese character is a word; else a run of letters and digits is one, and each punctuation mark.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # written without blanks


@cache
def _pattern() -> re.Pattern[str]:
    """Python's `\\w` leaves out the vowel signs of Indian scripts, which would cut their words in pieces."""
    marks = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c)[0] == "M") + "\u200c\u200d"
    return re.compile(rf"[{CJK}]|(?:[^\W{CJK}][{marks}]*)+|\S")


def cut_words(text: str) -> list[tuple[int, int]]:
    """(begin, end) of every word; what lies between is white space."""
    return [found.span() for found in _pattern().finditer(text)]


def cut_characters(text: str) -> list[tuple[int, int]]:
    """The same where every character is a word."""
    return [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]


def join_words(words: list[str]) -> str:
    """A text to read: with blanks between words, but for those of a single Chinese or Japanese character."""
    if words and sum(len(word) == 1 and ord(word) >= 0x3000 for word in words) > len(words) / 2:
        return "".join(words)
    return " ".join(words)
