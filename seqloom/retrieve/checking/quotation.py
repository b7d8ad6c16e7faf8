"""Is a sentence a quotation: does it stand in one source, word for word and in one piece?

White space, the style of quotation marks and dashes, full-width and half-width forms, the case of the first letter
and the final full stop may differ; nothing else may. A quotation begins and ends at the borders of words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from seqloom.retrieve.checking.tokens import CJK

_DOUBLE, _SINGLE, _DASHES = "“”„‟«»「」『』〝〞", "‘’‚‛`´", "‐‑‒–—―−"
_SAME = str.maketrans(
    {**dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DASHES, "-")}
    | {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
)
_LAST = " \t\n.。!;,…"
_QUOTE = re.compile(r'(?<!\d)"')  # after a digit the mark may mean inches
_LOOSE = re.compile(rf"(?<=[{CJK}。、,;:!?()'-])\s+|\s+(?=[{CJK}。、()-])")  # white space that may be absent


def same(text: str) -> str:
    """A text with one style of marks and forms, of the same length."""
    return _QUOTE.sub("'", text.translate(_SAME))


@lru_cache(maxsize=256)
def _squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(same(text).split())


@lru_cache(maxsize=256)
def _places(text: str) -> tuple[int, ...]:
    """Where each character of the squeezed text stands in the text."""
    return tuple(n for n, c in enumerate(text) if not c.isspace())


def _spaced(text: str) -> str:
    return _LOOSE.sub("", " ".join(same(text).split()))


@lru_cache(maxsize=64)
def _wanted(sentence: str) -> tuple[str, str, bool]:
    """What is looked for, without white space and with it, and whether a full stop ends it."""
    core = _core(sentence)
    ended = sentence.rstrip()[-1:].translate(_SAME) in tuple(".。!")
    return ("".join(core.split()), _spaced(core), ended) if re.search(r"\w", core) else ("", "", False)


def find(sentence: str, text: str) -> list[tuple[int, int]]:
    """Where in a text the sentence stands: every place, [start, end)."""
    needle, spaced, ended = _wanted(sentence)
    if not needle:
        return []
    squeezed, found = _squeezed(text), []
    for first in {needle[0], needle[0].upper(), needle[0].lower()}:
        at = squeezed.find(first + needle[1:])
        while at >= 0:
            places = _places(text)
            start, end = places[at], places[at + len(needle) - 1] + 1
            if _spaced(text[start:end])[1:] == spaced[1:] and _bordered(text, start, end):
                found.append((start, _with_ending(text, end) if ended else end))
            at = squeezed.find(first + needle[1:], at + 1)
    return sorted(found)


def _core(sentence: str) -> str:
    """A sentence without the full stop at its end and without quotation marks around the whole of it."""
    text = sentence.translate(_SAME).strip()
    if text[:1] == '"' and text.rstrip(_LAST)[-1:] == '"' and text.count('"') == 2:
        text = text.rstrip(_LAST)[1:-1].strip()
    return _QUOTE.sub("'", text.rstrip(_LAST))


def _with_ending(text: str, end: int) -> int:
    return end + 1 if text[end : end + 1] in tuple(".。!！") else end


_INSIDE = re.compile(rf"[^\W_{CJK}]{{2}}")  # the inside of a word; in Chinese a quotation may begin anywhere


def _bordered(text: str, start: int, end: int) -> bool:
    """Neither a word nor a number is cut at either end, and a question is not cut to a statement."""
    if (start and _INSIDE.match(text, start - 1)) or _INSIDE.match(text, end - 1):
        return False
    if text[start].isdigit() and re.search(r"(?:\d[.,:]|[-−.$€£])\Z", text[max(0, start - 2) : start]):
        return False
    if text[end - 1].isdigit() and re.match(r"[.,:]\d|[%％‰°]", text[end : end + 2]):
        return False
    return text[end : end + 2].lstrip()[:1] not in ("?", "？")
