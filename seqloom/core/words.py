"""Word boundaries in plain text, by one language-independent rule without a dictionary.

Each Chinese or Japanese character is a word; otherwise a word is a run of letters and digits, or a punctuation mark.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # scripts written without spaces


@cache
def marks() -> str:
    """Combining marks and joiners, which Python's `\\w` does not match: without them Indic words would be split."""
    return "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c)[0] == "M") + "\u200c\u200d"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"[{CJK}]|(?:[^\W{CJK}][{marks()}]*)+|\S")


def cut_words(text: str) -> list[tuple[int, int]]:
    """(begin, end) of every word; only white space lies between them."""
    return [found.span() for found in _pattern().finditer(text)]


def cut_characters(text: str) -> list[tuple[int, int]]:
    """The same, with every character as a word."""
    return [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]


def join_words(words: list[str]) -> str:
    """Readable text: words joined by spaces, or without them if most are single Chinese or Japanese characters."""
    if words and sum(len(word) == 1 and ord(word) >= 0x3000 for word in words) > len(words) / 2:
        return "".join(words)
    return " ".join(words)


def shorten(text: str, most: int = 200) -> str:
    """On one line, and cut after `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
