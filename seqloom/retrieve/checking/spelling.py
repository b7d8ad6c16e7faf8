"""One spelling of an English word: British and American forms and regular inflections give the same stem.

The rules are applied to every word alike, so a stem need not be right, only the same for both spellings.
"""

from __future__ import annotations

import re
from functools import lru_cache

_BRITISH = (
    (re.compile(r"([iy])s(e[ds]?|ing|ation)$"), r"\1z\2"),  # organise, analyse
    (re.compile(r"our"), "or"),  # colour, favourite
    (re.compile(r"[ao]e(?=.)"), "e"),  # haemoglobin, oestrogen
    (re.compile(r"ph"), "f"),  # sulphur
    (re.compile(r"([bt])re(s?)$"), r"\1er\2"),  # fibre, theatre
    (re.compile(r"ence(s?)$"), r"ense\1"),  # licence, defence
    (re.compile(r"ogue(s?)$"), r"og\1"),  # catalogue
    (re.compile(r"dgement"), "dgment"),
    (re.compile(r"lment"), "llment"),  # enrolment
    (re.compile(r"inium$"), "inum"),  # aluminium
)
_OTHERS = {"grey": "gray", "tyre": "tire", "tyres": "tires", "cheque": "check", "plough": "plow", "mould": "mold"} | {
    "aging": "ageing", "agreed": "agree", "disagreed": "disagree", "guaranteed": "guarantee",
}  # fmt: skip
_ENDINGS = (("ees", "ee"), ("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A crude stem, the same for the inflections and spellings of a regular word; never shown."""
    word = word.lower()
    if not word.isascii() or len(word) < 4:
        return word
    word = _OTHERS.get(word, word)
    for pattern, instead in _BRITISH:
        word = pattern.sub(instead, word)
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeious":
        word = word[:-1]  # travelled and traveled, stopped and stop, programme
    return word
