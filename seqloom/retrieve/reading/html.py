"""HTML: the text that a page shows, block by block, each piece with its line in the file.

Scripts, styles and comments are no text. Text that a person does not see (html_hidden.py) is kept and reported as
hidden. White space is collapsed as a browser does, except in `pre`; blocks and items of lists are separated by an empty
line, so that no sentence goes on from one to the next, rows by the end of a line, cells by a tab.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.encodings import find_codec
from seqloom.data.files import COMPRESSED, declare, declared
from seqloom.retrieve.document import Document, Heading, Hidden
from seqloom.retrieve.reading.html_hidden import Look, inside
from seqloom.retrieve.reading.html_tokens import Tag, Text, tokens, unescaped
from seqloom.retrieve.reading.limits import check_size, whole_text

DROPPED = {"script", "style", "template", "iframe", "noembed", "noframes", "title"}
VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
}  # fmt: skip
BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "details", "dialog", "div", "dl", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "main", "nav", "ol",
    "p", "pre", "section", "summary", "table", "ul",
}  # fmt: skip
ITEMS = {"caption", "dd", "dt", "legend", "li", "option"}
LINES = {"br", "tr", "tbody", "thead", "tfoot"}
CELLS = {"td", "th"}
CLOSES = {  # elements whose end tag may be missing: what they close when they open
    "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "tr": {"tr"}, "td": {"td", "th"}, "th": {"td", "th"},
    "option": {"option"},
}  # fmt: skip
WITHIN = {"ul", "ol", "dl", "table", "select", "template"}  # what they do not reach beyond
REACH = 64  # open elements that are looked at for one to close

_SPACE = re.compile(r"[ \t\n\r\f]+")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)


def read(path: Path, name: str) -> Iterator[Document]:
    check_size(path)
    _declare(path)
    page = _Page(whole_text(path))
    headings = tuple(page.headings)
    top = next((heading.text for heading in headings if heading.level == 1), "")
    title = page.title or " ".join(top.split()) or path.name
    yield Document(name, "".join(page.pieces), title, "line", tuple(page.marks), headings, tuple(page.hidden))


def _declare(path: Path) -> None:
    """What the page itself says about its encoding counts, unless the user has said something."""
    if declared(path) is None and path.suffix.lower() not in COMPRESSED:
        with path.open("rb") as file:
            found = _CHARSET.search(file.read(4096))
        try:
            if found and find_codec(found[1].decode()) not in ("utf-8", "ascii"):
                declare(str(path), found[1].decode())
        except UserError:  # no encoding of that name: what the file looks like decides
            return


class _Page:
    def __init__(self, text: str) -> None:
        self.pieces: list[str] = []
        self.marks: list[tuple[int, int]] = []
        self.headings: list[Heading] = []
        self.hidden: list[Hidden] = []
        self.title = ""
        self.length, self.wanted = 0, ""  # characters so far; the separator that the next text needs
        self.stack: list[tuple[str, Look]] = []
        self.open: Counter[str] = Counter()
        self.look, self.styled = Look(), False
        self.hiding = ""  # why the latest piece is hidden
        self.heading: tuple[int, int] | None = None  # its level, and the piece that it begins with
        self.line, self.counted = 1, 0  # the line of an offset of the file
        for token in tokens(text):
            self.line += text.count("\n", self.counted, token.start)
            self.counted = token.start
            if isinstance(token, Text):
                self._text(token.raw)
            elif token.closes:
                self._close(token.name)
            else:
                self._open(token)
        self._end_heading()

    def _open(self, tag: Tag) -> None:
        name = tag.name
        if name == "style" or (name == "link" and "stylesheet" in tag.attributes.get("rel", "").lower()):
            self.styled = True
        if name in BLOCKS and self.open["p"]:
            self._imply({"p"})
        elif name in CLOSES:
            self._imply(CLOSES[name])
        self._separate(name)
        if name[0] == "h" and name[1:] in ("1", "2", "3", "4", "5", "6"):
            self._end_heading()
            self.heading = int(name[1:]), len(self.pieces)
        if name in VOID:
            return
        self.stack.append((name, self.look))
        self.open[name] += 1
        self.look = inside(self.look, name, tag.attributes)

    def _close(self, name: str) -> None:
        if name in BLOCKS | ITEMS | LINES:
            self._separate(name)
        if name[0] == "h" and name[1:].isdigit():
            self._end_heading()
        if self.open[name]:
            while self._pop() != name:
                pass

    def _pop(self) -> str:
        name, look = self.stack.pop()
        self.open[name] -= 1
        self.look = look
        return name

    def _imply(self, names: set[str]) -> None:
        """Close the nearest element of these names, if it is in the same list or table."""
        if not any(self.open[name] for name in names):
            return
        for back, (name, _) in enumerate(reversed(self.stack[-REACH:]), 1):
            if name in names:
                for _ in range(back):
                    self._pop()
                return
            if name in WITHIN:
                return

    def _separate(self, name: str) -> None:
        wanted = "\n\n" if name in BLOCKS | ITEMS else "\n" if name in LINES else "\t" if name in CELLS else ""
        self.wanted = max(self.wanted, wanted, key=_RANKS.__getitem__)

    def _text(self, raw: str) -> None:
        if self.open["title"] and self.stack[-1][0] == "title":
            self.title = self.title or " ".join(unescaped(raw).split())
            return
        if any(self.open[name] for name in DROPPED):
            return
        kept = self.open["pre"] or self.open["textarea"]
        for number, part in enumerate(raw.split("\n")):
            if number:
                self.wanted = self.wanted or " " if not kept else "\n\n" if "\n" in self.wanted else "\n"
            text = unescaped(part) if "&" in part else part
            if kept:
                self._put(text.rstrip("\r"), number)
            elif bare := _SPACE.sub(" ", text).strip(" "):
                if text[0] in " \t\r\f\n":
                    self.wanted = self.wanted or " "
                self._put(bare, number)
                if text[-1] in " \t\r\f\n":
                    self.wanted = " "
            elif text:
                self.wanted = self.wanted or " "

    def _put(self, text: str, down: int) -> None:
        """`down`: lines below the beginning of this piece of the file."""
        if not text.strip():
            return
        if self.length:
            self.pieces.append(self.wanted)
            self.length += len(self.wanted)
        self.wanted = ""
        if not self.marks or self.marks[-1][1] != self.line + down:
            self.marks.append((self.length, self.line + down))
        if reason := self.look.hidden(self.styled):
            start = self.hidden.pop().start if reason == self.hiding else self.length
            self.hidden.append(Hidden(start, self.length + len(text), reason))
        self.hiding = reason
        self.pieces.append(text)
        self.length += len(text)

    def _end_heading(self) -> None:
        if self.heading:
            level, first = self.heading
            whole = "".join(self.pieces[first:])
            if text := whole.strip():
                start = self.length - len(whole) + len(whole) - len(whole.lstrip())
                self.headings.append(Heading(start, level, text))
            self.heading = None


_RANKS = {"": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4}
