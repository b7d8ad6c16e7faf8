"""Gettext catalogues (.po): entries one at a time, each with the line it starts on.

An entry is comments, then `msgctxt` (ignored), `msgid`, optionally `msgid_plural`, and `msgstr` or `msgstr[0]`, ...; a
string may continue over several lines. Of plural forms the first is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.files import read_lines

STRING = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr|msgstr\[\d+\])\s*)?"((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class Entry:
    line: int = 0  # of msgid
    fuzzy: bool = False
    strings: dict[str, str] = field(default_factory=dict)  # by keyword
    last: str = ""  # the keyword that a continuation line belongs to

    @property
    def translated(self) -> bool:
        return self.last.startswith("msgstr")

    def row(self) -> tuple[int, list[str]]:
        translation = self.strings.get("msgstr", self.strings.get("msgstr[0]", ""))
        return self.line, [self.strings["msgid"], "" if self.fuzzy else translation]


def read_catalogue(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, [message, translation]); the translation is empty if missing or fuzzy, and both are if obsolete.

    The header is the translation of the empty message.
    """
    entry = Entry()
    number = 0
    for number, line in enumerate((line.strip() for line in read_lines(path)), 1):
        if entry.translated and line.startswith(("#", "msgctxt", "msgid")):
            yield entry.row()
            entry = Entry()
        if line.startswith("#,"):
            entry.fuzzy |= "fuzzy" in re.split(r"[,\s]+", line)
        elif line.startswith("#~"):
            entry.fuzzy = False  # the flag belonged to the obsolete entry
            if re.match(r"#~\s*msgid\b", line):
                yield number, ["", ""]
        elif line and not line.startswith("#"):
            _take(entry, line, number, f"{path}:{number}")
    if entry.translated:
        yield entry.row()
    elif entry.strings:
        raise UserError(f"{path}:{number}: the last entry has no msgstr")


def _take(entry: Entry, line: str, number: int, place: str) -> None:
    found = STRING.fullmatch(line)
    if found is None:
        raise UserError(f'{place}: not a line of a gettext catalogue; expected msgid "...", msgstr "..." or a comment')
    keyword = found[1] or entry.last
    if found[1] and keyword in entry.strings:
        raise UserError(f"{place}: a second {keyword} in one entry; is msgstr missing before it?")
    if not keyword or (keyword.startswith("msgstr") and "msgid" not in entry.strings):
        raise UserError(f"{place}: {keyword or 'a string'} without a msgid before it")
    if found[1] == "msgid":
        entry.line = number
    entry.strings[keyword] = entry.strings.get(keyword, "") + ESCAPE.sub(_unescaped, found[2])
    entry.last = keyword


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, other = found.groups()
    if octal or hexadecimal:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return ESCAPED.get(other, other)
