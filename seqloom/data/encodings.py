"""Which encoding a text that is not UTF-8 is in, from a sample of its bytes.

Every candidate that can decode the sample is scored by how likely its characters are in a text of that language, in
nats: -log of the share of the group that a character belongs to, divided by the size of the group. The likeliest one is
named if it fits a text of its language and leads the others clearly; otherwise it is unknown.
"""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from seqloom.core.errors import UserError, unknown
from seqloom.data import common_characters as common

BOMS = {  # the longer first: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    b"\x84\x31\x95\x33": "gb18030",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
SUPERSETS = {  # what Windows and the web write under these names
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "cp950",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
    "utf-8-sig": "utf-8",
}
_NOT_FOR_FILES = {"utf-7", "idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"}

_ASCII, _CONTROL, _OTHER, _NEXT = 3.7, 15.0, 14.5, 5.0  # nats: a letter, a control or rare character, odd neighbours
_CLEAR = 4.0  # nats between the likeliest candidate and the next
_SURE = 12  # characters that are valid UTF-8 by chance with a probability of less than 1e-6
_MARKS = "，。！？：；、“”‘’（）《》「」『』【】…—·～　０１２３４５６７８９"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_RULED_OUT = re.compile("[\x80-\x9f\ue000-\uf8ff\ufffe\uffff\ufffd]")  # no text has these


@dataclass(frozen=True)
class Encoding:
    name: str  # for --encoding and for iconv
    codec: str  # Python's name
    title: str
    language: str
    limit: float  # nats per character that is not ASCII, which a text of this language does not exceed
    groups: tuple[tuple[str, float], ...] = ()  # characters and their share of those that are not ASCII
    usual: tuple[str, int, int, float] | None = None  # codec, lead bytes from and to, and the share of those characters
    odd: str = "[a-z](?=[^\x00-\x7f][a-z])"  # pattern of improbable neighbours
    least: int = 1  # characters that are not ASCII

    def __str__(self) -> str:
        return f"{self.title} ({self.language})"

    @property
    def costs(self) -> dict[str, float]:
        return _costs(self)


_LATIN = (
    (common.WESTERN, 0.8),
    (common.WESTERN.upper(), 0.05),
    ("«»¿¡°€’‘“”–—…·£§\xa0", 0.14),
    ("ÿšžŠŽŸÐðÞþÝý²³¹ºª½¼¾±×÷®©™¢¥µ¶¬¦¨¯´¸¤•†‡‰‹›„‚ƒˆ˜", 0.0002),
)
_LATIN_ODD = r"[^\W\d_a-zA-Zß](?=[^\W\d_a-zA-Zß])|€(?=[a-z])|[a-zß-ÿ](?=[A-ZÀ-ÞŠŽŸŒ«¿¡°€“”„‚£§†‡ˆ‰‹•–—…](?:[a-zß-ÿ]))"

CANDIDATES = (
    Encoding(
        "gb18030", "gb18030", "GB18030", "Chinese", 9.5,
        ((_MARKS, 0.14), (common.SIMPLIFIED, 0.6), (common.TRADITIONAL, 0.05)), ("gb2312", 0xB0, 0xD7, 0.2),
    ),
    Encoding(
        "big5", "cp950", "Big5", "traditional Chinese", 9.5,
        ((_MARKS, 0.14), (common.TRADITIONAL, 0.6)), ("cp950", 0xA4, 0xC6, 0.25),
    ),
    Encoding(
        "cp932", "cp932", "Shift-JIS", "Japanese", 9.0,
        ((_MARKS, 0.1), (common.HIRAGANA, 0.45), (common.KATAKANA, 0.1), (common.KANJI, 0.2)),
        ("euc_jp", 0xB0, 0xCF, 0.14),
    ),
    Encoding(
        "euc-jp", "euc_jp", "EUC-JP", "Japanese", 9.0,
        ((_MARKS, 0.1), (common.HIRAGANA, 0.45), (common.KATAKANA, 0.1), (common.KANJI, 0.2)),
        ("euc_jp", 0xB0, 0xCF, 0.14),
    ),
    Encoding(
        "cp949", "cp949", "EUC-KR", "Korean", 9.0,
        ((_MARKS, 0.04), (common.HANGUL, 0.75)), ("euc_kr", 0xB0, 0xC8, 0.2),
    ),
    Encoding("latin1", "iso8859-1", "Latin-1", "Western European", 6.4, _LATIN, odd=_LATIN_ODD),
    Encoding("windows-1252", "cp1252", "Windows-1252", "Western European", 6.4, _LATIN, odd=_LATIN_ODD),
    Encoding(
        "windows-1251", "cp1251", "Windows-1251", "Cyrillic", 4.3,
        ((common.CYRILLIC[:10], 0.6), (common.CYRILLIC[10:], 0.32), (common.CYRILLIC.upper(), 0.05), ("«»—–№…", 0.02)),
        odd="[а-я](?=[А-Я])|[a-zA-Z](?=[а-яА-Я])|[а-яА-Я](?=[a-zA-Z])", least=4,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a text looks like: the encoding, or None and those that it may be, the likeliest first."""

    best: Encoding | None
    likely: tuple[Encoding, ...] = ()


def recognise(sample: bytes) -> Verdict:
    """The encoding of complete lines that are not UTF-8."""
    scored = sorted(_scored(sample), key=lambda found: found[0])
    fitting = [(nats, encoding) for nats, per, encoding in scored if per <= encoding.limit]
    rest = [nats for nats, _, encoding in scored if not fitting or encoding.title != fitting[0][1].title]
    if fitting and (not rest or min(rest) - fitting[0][0] >= _CLEAR):
        return Verdict(fitting[0][1])
    return Verdict(None, tuple(encoding for nats, _, encoding in scored if nats - scored[0][0] < 3 * _CLEAR)[:2])


def _scored(sample: bytes) -> Iterator[tuple[float, float, Encoding]]:
    """(nats, nats per character that is not ASCII, encoding) of each candidate that can decode the sample."""
    seen = set()
    for encoding in CANDIDATES:
        try:
            text = sample.decode(encoding.codec)
        except UnicodeDecodeError:
            continue
        if _RULED_OUT.search(text) or text in seen:  # without curly quotes, Windows-1252 is Latin-1
            continue
        seen.add(text)
        costs = encoding.costs
        counts = Counter(text)
        foreign = {character: count for character, count in counts.items() if character > "\x7f"}
        nats = sum(count * costs.get(character, _OTHER) for character, count in foreign.items())
        nats += _NEXT * len(re.findall(encoding.odd, text))
        many, controls = sum(foreign.values()), len(_CONTROLS.findall(text))
        per = nats / many if many >= encoding.least else math.inf
        yield nats + _ASCII * (counts.total() - many - controls) + _CONTROL * controls, per, encoding


@lru_cache(maxsize=16)
def _costs(encoding: Encoding) -> dict[str, float]:
    found: dict[str, float] = {}
    groups = [(set(characters), share) for characters, share in encoding.groups]
    if encoding.usual:
        codec, first, last, share = encoding.usual
        pairs = (bytes([lead, trail]) for lead in range(first, last + 1) for trail in range(0x40, 0xFF))
        groups.append(({text for pair in pairs if len(text := pair.decode(codec, "ignore")) == 1}, share))
    for characters, share in groups:
        for character in characters:
            found[character] = min(found.get(character, _OTHER), -math.log(share / len(characters)))
    return found


def recognise_wide(sample: bytes) -> str | None:
    """`utf-16le` or `utf-16be` without a byte order mark: the NUL bytes of ASCII characters are on one side."""
    zeros = {"utf-16be": sample[::2].count(0), "utf-16le": sample[1::2].count(0)}
    name = max(zeros, key=lambda name: zeros[name])
    if len(sample) < 8 or not zeros[name] or 4 * min(zeros.values()) > zeros[name]:
        return None
    try:
        text = codecs.getincrementaldecoder(name)().decode(sample)  # the last character may be cut
    except UnicodeDecodeError:
        return None
    printable = sum(character.isprintable() or character.isspace() for character in text)
    spoken = sum(character < "\u0250" or character in _known() for character in text)
    return name if printable >= 0.98 * len(text) and spoken >= 0.5 * len(text) else None


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    """Characters of some candidate language."""
    return frozenset(character for encoding in CANDIDATES for character in encoding.costs)


def is_surely_utf8(sample: bytes) -> bool:
    """So many characters of several bytes are not valid UTF-8 by chance; the last may be cut."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return sum(character > "\x7f" for character in text) >= _SURE


def find_codec(name: str) -> str:
    """Python's name of an encoding: the superset that text under this name is really written in."""
    try:
        found = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        raise _unknown(name) from None
    if not found._is_text_encoding or found.name in _NOT_FOR_FILES:
        raise _unknown(name)
    return SUPERSETS.get(found.name, found.name)


def _unknown(name: str) -> UserError:
    usual = [encoding.name for encoding in CANDIDATES]
    return unknown("encoding", name, [*usual, "utf-8", "utf-16", "utf-16le", "utf-16be", "gbk", "shift_jis", "euc-kr"])
