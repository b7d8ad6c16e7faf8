"""Where the sentences of a text are, in English, Chinese and both mixed.

Two steps. Lines are joined to stretches: an empty line, a heading, an item of a list, a row of a table, a line of code
and a line that ends long before it had to are stretches of their own, while lines that were only wrapped go on.
Then each stretch is cut after full stops and their like, but not after abbreviations, initials and numbers of items.

Spans are [start, end) without white space around. What has no letter or digit (a rule, a fence) is no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from seqloom.retrieve.abbreviations import ALWAYS, BEFORE_NUMBERS, MONTHS, PERHAPS, STARTERS

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CLOSING = "\"'”’»）)\\]】」』》〉*_`"
_END = re.compile(rf"[.!?。！？；｡…]+[{_CLOSING}]*(?:\[\d{{1,3}}(?:[,–-] ?\d{{1,3}}){{0,5}}\])*")
_WORD = re.compile(r"[^\W_]")
_BEFORE = re.compile(r"[^\s(\[“‘\"'（{]*$")
_NEXT = re.compile(r"\s*[\"'“‘(\[«（「『{*_]*([^\W_]\S{0,40})?")
_WIDE = frozenset("。！？；｡")
_QUOTES_END = frozenset('”」』’"')
_SAID = re.compile(r"[^，。！？；：、\s“”]{0,8}?[说道问答喊叫想笑嚷骂叹]")
_ITEM = re.compile(
    r"\s*(?:[-*+•·▪◦●○■□➢–—]\s|\d{1,3}(?:[.)]\s|[、．）])|[(（][\da-zA-Z一二三四五六七八九十]{1,3}[)）]"
    r"|[一二三四五六七八九十]{1,3}[、．]|第[\d一二三四五六七八九十百零]{1,5}[章节条部篇]|[a-zA-Z][.)]\s)"
)
_ALONE = re.compile(r"\s*(?:#{1,6}\s|\||>|```|~~~|[=\-*_]{3,}\s*$|@\w|//|/\*|<[/!a-zA-Z])")
_CODE = re.compile(
    r"[{}]\s*$|[)\]}\"']\s*;\s*$|\)\s*(?:->.*)?:\s*$|[\w\])\"']\s*(?:[-+*/:=]?=|=>|->)\s|\w\(\)|::\w|^\s*(?:else|try):"
)
_CODE_MARK = re.compile(r"[={}():]")  # quicker: most lines of prose have none
_STATEMENT = re.compile(
    r"\s*(?:import [\w.]+(?: as \w+)?|from [\w.]+ import .*|def \w+\(.*|class \w+[(:].*|return \S+|#include .*)$"
)
_NUMBERED = re.compile(r"(?<![^\W\d_])\d[\d.,:%]*\s*$")
_WRAPPED = re.compile(rf"(?<=[{_CJK}，。、；：！？）」』”》])[ \t]*\n[ \t]*(?=[{_CJK}，。、；：！？（「『“《])")
_LONGEST_CODE = 300  # characters of a line
_NOT_OVER = (",", "，", "、", "-", "–", "—", "(", "（", "“", "《")
_SHORT = 0.7  # of the longest line of a paragraph: a line that would leave more room was ended on purpose


def sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the sentences, in order."""
    found: list[tuple[int, int]] = []
    for start, end in stretches(text):
        for first, last in _cut(text, start, end):
            if _WORD.search(text, first, last):
                found.append((first, last))
    return found


def unwrapped(text: str) -> str:
    """Without the line breaks inside of Chinese and Japanese, which stand for nothing, not even for a space."""
    return _WRAPPED.sub("", text) if "\n" in text else text


def one_line(text: str) -> str:
    return " ".join(unwrapped(text).split())


def stretches(text: str) -> Iterator[tuple[int, int]]:
    """Spans of text that no sentence goes beyond."""
    lines: list[tuple[int, str]] = []  # of the paragraph so far
    offset = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            lines.append((offset, line))
        elif lines:
            yield from _stretches(lines)
            lines = []
        offset += len(line) + 1
    if lines:
        yield from _stretches(lines)


def _stretches(lines: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    start = lines[0][0]
    if len(lines) > 1:
        width = max(len(line) for _, line in lines)
        for (offset, line), (after, below) in pairwise(lines):
            if _ends(line, below, width):
                yield start, offset + len(line)
                start = after
    yield start, lines[-1][0] + len(lines[-1][1])


def _ends(line: str, below: str, width: int) -> bool:
    """Whether a line of a paragraph that is `width` characters wide ends a sentence, whatever it ends with."""
    if _ALONE.match(line) or _ALONE.match(below) or _ITEM.match(below):
        return True
    bare, next_bare = line.rstrip(), below.lstrip()
    if "\t" in bare.lstrip() or "\t" in next_bare.rstrip():  # rows of a table
        return True
    indent, next_indent = len(line) - len(line.lstrip()), len(below) - len(next_bare)
    if next_indent > indent and not _ITEM.match(line):
        return True
    if _is_code(bare) or _is_code(below):
        return True
    first = next_bare[0]
    if first.islower() or bare.endswith(_NOT_OVER):
        return False
    if _NUMBERED.search(bare) and _NUMBERED.search(below):  # the same, without its tabs
        return True
    word = 1 if first > "\u2e7f" else len(next_bare.split(None, 1)[0])
    return len(bare) + 1 + word <= _SHORT * width


def _is_code(line: str) -> bool:
    if len(line) > _LONGEST_CODE:
        return False
    return bool(_CODE_MARK.search(line) and _CODE.search(line)) or bool(_STATEMENT.match(line))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for mark in _END.finditer(text, start, end):
        at = mark.end()
        if at < end and _is_end(text, begin, mark, end):
            if span := _bare(text, begin, at):
                yield span
            begin = at
    if span := _bare(text, begin, end):
        yield span


def _bare(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Without white space around; None if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _is_end(text: str, begin: int, mark: re.Match[str], end: int) -> bool:
    """Whether a sentence that began at `begin` ends with this mark, which more text follows."""
    marks = mark[0]
    follows = text[mark.end()]
    stop = marks.rstrip("\"'”’»）)]】」』》〉*_`0123456789[,–- ")
    closed = len(stop) < len(marks)
    if not _WIDE.isdisjoint(stop):
        return not closed or _ends_quoted(text, marks, mark.end(), end)
    wide = follows > "\u2e7f" and follows not in "，、：）」』”》…—"
    if stop.strip("…") == "" and wide:  # …… goes on, unless the one who speaks has finished
        return closed and _ends_quoted(text, marks, mark.end(), end)
    if wide and stop[-1] in "!?":
        return not closed or _ends_quoted(text, marks, mark.end(), end)
    if wide:  # a full stop of English between Chinese words
        before = text[max(begin, mark.start() - 4) : mark.start()]
        return not ("." in before or (before.strip().isdigit() and mark.start() - begin <= 4))
    if not follows.isspace():
        return False
    found = _NEXT.match(text, mark.end(), end)
    word = found[1] if found else None
    if word is None or word[0].islower():
        return word is None and stop[-1] != "…"
    return stop != "." or not _abbreviates(text, begin, mark.start(), word)


def _ends_quoted(text: str, marks: str, at: int, end: int) -> bool:
    """Whether a full stop inside quotes or brackets ends the sentence around them as well."""
    if text[at].isspace() or text[at] in '“「『‘"':
        return True
    if marks[-1] not in _QUOTES_END or text[at] in "，。、；：！？的）":
        return False
    return not _SAID.match(text, at, end)


def _abbreviates(text: str, begin: int, dot: int, word: str) -> bool:
    """Whether the full stop belongs to the word before it; `word`: the one that follows."""
    found = _BEFORE.search(text, max(begin, dot - 40), dot)
    before = found[0] if found else ""
    lower = before.lower()
    if lower in ALWAYS:
        return True
    if lower in BEFORE_NUMBERS:
        return word[0].isdigit() or len(word.rstrip(".,;:)")) == 1 or word.isupper()
    if lower in MONTHS:
        return word[0].isdigit()
    if before.isdigit() and len(before) <= 3:
        return not text[begin : dot - len(before)].strip()  # the number of an item
    starts = word.rstrip(".,;:!?)\"'’”") in STARTERS
    if len(before) == 1 and before.isalpha():
        return (before.isupper() and not starts) or not text[begin : dot - 1].strip()
    return (lower in PERHAPS or "." in before.strip(".")) and not starts and not before[0].isdigit()
