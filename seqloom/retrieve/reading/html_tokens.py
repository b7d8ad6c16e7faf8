"""Tags and texts of an HTML file, each with its offset, in time proportional to its length.

The standard library's parser needs time that grows with the square of malformed input (30 kB of `<a ` take 18 s in
Python 3.11.7), and a folder of documents may hold anything. Like a browser this one accepts everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

RAW = {"script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp"}  # no tags inside

_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")
_REST = re.compile(r"[\s/=]*")
_ENDLESS = re.compile(r"&#(?:[xX][0-9a-fA-F]{9,}|[0-9]{9,});?")


class Tag(NamedTuple):
    start: int
    name: str
    attributes: dict[str, str]
    closes: bool = False


class Text(NamedTuple):
    start: int
    raw: str  # with entities


def tokens(text: str) -> Iterator[Tag | Text]:
    """Comments, declarations and instructions are left out."""
    at, end = 0, len(text)
    while at < end:
        opening = text.find("<", at)
        if opening < 0:
            yield Text(at, text[at:])
            return
        if opening > at:
            yield Text(at, text[at:opening])
        after = text[opening + 1 : opening + 2]
        if after in ("!", "?"):
            at = _after_declaration(text, opening)
        elif after == "/" and (name := _NAME.match(text, opening + 2)):
            yield Tag(opening, name[0].lower(), {}, closes=True)
            at = _after(text, ">", name.end())
        elif name := _NAME.match(text, opening + 1):
            tag, at = _open_tag(text, opening, name)
            yield tag
            if tag.name in RAW:
                stop = re.compile(rf"</{re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE).search(text, at)
                content = text[at : stop.start() if stop else end]
                if content:
                    yield Text(at, content)
                at += len(content)
        else:  # a < that begins no tag
            yield Text(opening, "<")
            at = opening + 1


def unescaped(text: str) -> str:
    """With characters in place of their references; one of thousands of digits is no character, as to browsers."""
    return unescape(_ENDLESS.sub("\ufffd", text))


def _open_tag(text: str, start: int, name: re.Match[str]) -> tuple[Tag, int]:
    attributes: dict[str, str] = {}
    at = name.end()
    while found := _ATTRIBUTE.match(text, at):
        value = next((group for group in found.groups()[1:] if group is not None), "")
        attributes.setdefault(found[1].lower(), unescaped(value) if "&" in value else value)
        at = found.end()
        at += text.startswith("=", at)  # a stray sign
    rest = _REST.match(text, at)
    at = rest.end() if rest else at
    return Tag(start, name[0].lower(), attributes), at + text.startswith(">", at)


def _after_declaration(text: str, opening: int) -> int:
    if text.startswith("<!--", opening):
        if text.startswith((">", "->"), opening + 4):  # an empty comment, as browsers read it
            return text.index(">", opening) + 1
        return _after(text, "-->", opening + 4)
    if text.startswith("<![CDATA[", opening):
        return _after(text, "]]>", opening)
    return _after(text, ">", opening)


def _after(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)
