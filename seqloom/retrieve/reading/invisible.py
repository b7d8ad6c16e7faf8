"""Characters that take no space on the screen, and that a person who reads the file does not see.

They stay in the text, so that offsets are right, and are reported as hidden. Joiners between letters of scripts that
need them (Persian, Hindi) and inside emoji are ordinary writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seqloom.retrieve.document import Hidden

_ALWAYS = "\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # spaces of no width, marks of order, tags
_JOINERS = "\u200c\u200d"  # hidden only after letters of scripts that join nothing
_JOIN_NOTHING = "\x00-\u024f\u0370-\u052f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef"
_INVISIBLE = re.compile(f"[{_ALWAYS}{_JOINERS}]+")
_PLAIN = re.compile(f"[{_JOIN_NOTHING}]")
_FLAG = "\U0001f3f4"  # flags of regions are written with it and tags


def zero_width(text: str) -> Iterator[Hidden]:
    if text.isascii():
        return
    for found in _INVISIBLE.finditer(text):
        before = text[found.start() - 1 : found.start()]
        joins = all(character in _JOINERS for character in found[0])
        if before != _FLAG and (not joins or _PLAIN.match(before) or not before):
            yield Hidden(found.start(), found.end(), "zero width")
