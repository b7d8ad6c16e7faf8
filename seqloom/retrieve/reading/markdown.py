"""Markdown: the text is the file itself, a place is a line, and headings are those outside of code.

Both kinds of headings are known (`## Heading`, and a line underlined with === or ---). Comments are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.retrieve.document import Document, Heading, Hidden
from seqloom.retrieve.reading.limits import whole_text
from seqloom.retrieve.reading.text import line_marks

_MARKED = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|--+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[-*+>|<]|\d{1,9}[.)](?:\s|$))")  # code, lists, quotes, tables, HTML
_COMMENT_LINE = re.compile(r" {0,3}\[//\]:\s*#")  # a link that goes nowhere, used as a comment
_FRONT_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)


def read(path: Path, name: str) -> Iterator[Document]:
    text = whole_text(path)
    begin, title = _front_matter(text)
    scan = _Scan()
    offset = begin
    for line in text[begin:].split("\n"):
        scan.line(line, offset)
        offset += len(line) + 1
    scan.close(len(text))
    top = next((heading.text for heading in scan.headings if heading.level == 1), "")
    yield Document(
        name, text, title or top or path.name, "line", line_marks(text), tuple(scan.headings), tuple(scan.hidden)
    )


def _front_matter(text: str) -> tuple[int, str]:
    """Where settings between two lines --- at the very beginning end, and the title that they give."""
    if not text.startswith("---\n") or not (end := _FRONT_END.search(text, 4)):
        return 0, ""
    title = _FRONT_TITLE.search(text, 4, end.start())
    return end.end(), title[1].strip().strip("'\"") if title else ""


@dataclass
class _Scan:
    """Line by line: what is a heading, and what is hidden."""

    headings: list[Heading] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)
    fence: str = ""  # that opened the code
    comment: int = -1  # where an open comment began
    paragraph: list[tuple[int, str]] = field(default_factory=list)  # its lines so far, at most two

    def line(self, line: str, offset: int) -> None:
        if self.comment < 0 and self._in_code(line):
            self.paragraph = []
            return
        before, inside = self.comment, self._comments(line, offset)
        if inside or before >= 0:
            self.paragraph = []
            return
        if _COMMENT_LINE.match(line):
            self.hidden.append(Hidden(offset, offset + len(line), "comment"))
        elif found := _MARKED.match(line):
            self._add(offset + found.end(), len(found[1]), _without_closing(line[found.end() :]))
            self.paragraph = []
        elif len(self.paragraph) == 1 and (under := _UNDERLINE.match(line)):
            start, above = self.paragraph[0]
            self._add(start + len(above) - len(above.lstrip()), 1 if under[1][0] == "=" else 2, above.strip())
            self.paragraph = []
        elif not line.strip() or (not self.paragraph and _NO_PARAGRAPH.match(line)):
            self.paragraph = [] if not line.strip() else [(offset, line)] * 2
        elif len(self.paragraph) < 2:
            self.paragraph.append((offset, line))

    def close(self, end: int) -> None:
        if self.comment >= 0:
            self.hidden.append(Hidden(self.comment, end, "comment"))

    def _add(self, start: int, level: int, text: str) -> None:
        if text:
            self.headings.append(Heading(start, level, text))

    def _in_code(self, line: str) -> bool:
        found = _FENCE.match(line)
        if not self.fence:
            if found and not (found[1][0] == "`" and "`" in found[2]):
                self.fence = found[1]
            return bool(self.fence)
        if found and found[1].startswith(self.fence) and not found[2].strip():
            self.fence = ""
        return True

    def _comments(self, line: str, offset: int) -> bool:
        """Note the comments of a line; whether it holds nothing else."""
        at, ticks, left = 0, 0, []
        while at < len(line):
            if self.comment < 0:
                start = line.find("<!--", at)
                left.append(line[at : start if start >= 0 else None])
                if start < 0:
                    break
                ticks += line.count("`", at, start)
                if ticks % 2:  # in code
                    at = start + 4
                    left.append("<!--")
                    continue
                self.comment, at = offset + start, start
            end = line.find("-->", at)
            if end < 0:
                break
            at = end + 3
            self.hidden.append(Hidden(self.comment, offset + at, "comment"))
            self.comment = -1
        return self.comment >= 0 or (bool(line.strip()) and not "".join(left).strip())


def _without_closing(text: str) -> str:
    """Without the # signs that may close a heading, and without a comment."""
    text = text.partition("<!--")[0].rstrip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text
