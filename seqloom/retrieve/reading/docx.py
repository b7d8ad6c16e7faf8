"""Word documents: paragraphs, tables and headings of the body, in order.

A place is a page where Word has stored its page breaks, otherwise a paragraph, counted as they come (cells of tables
included). Footnotes and endnotes follow the paragraph, or the table, that refers to them. Hidden are runs that are
formatted as hidden, white on nothing, or tiny, directly or by their style. Deleted text of tracked changes, comments,
headers and footers are not read.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Document, Heading, Hidden, Unit
from seqloom.retrieve.reading.limits import check_size

LARGEST_XML = 48 << 20  # bytes of all XML parts together, unpacked
LARGEST_WHOLE = 512 << 20  # bytes of everything, unpacked

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # of what stands before it
_BREAKS = {_W + "br": "\n", _W + "cr": "\n", _W + "tab": "\t", _W + "noBreakHyphen": "-"}
_LEFT_OUT = {_W + "del", _W + "moveFrom", _W + "instrText", _W + "rPr", _W + "pPr", _W + "sectPr", _FALLBACK}
_REFERENCES = {_W + "footnoteReference": "footnote", _W + "endnoteReference": "endnote"}
_HEADING = re.compile(r"heading ([1-9])")
_TINY = 4  # half points
_PLAIN_TABLES = {None, "TableNormal", "TableGrid"}


def read(path: Path, name: str) -> Iterator[Document]:
    check_size(path)
    _check_parts(path)
    whole = _opened(path)
    body = _Body(whole)
    for element in whole.element.body:
        body.block(element)
        body.put_notes()
    paged = bool(body.pages)
    marks = [(0, 1), *body.pages] if paged else body.marks
    title = (whole.core_properties.title or "").strip() or next(
        (heading.text for heading in body.headings if heading.level == 1), path.name
    )
    unit: Unit = "page" if paged else "paragraph"
    yield Document(
        name, body.text, title, unit, tuple(marks) or ((0, 1),), tuple(body.headings), tuple(body.hidden)
    )  # fmt: skip


def _opened(path: Path) -> Any:
    try:
        import docx
    except ImportError:
        raise UserError(f"{path}: Word documents need python-docx: pip install 'seqloom[retrieve]'") from None
    try:
        return docx.Document(str(path))
    except Exception as error:  # python-docx lets through whatever XML, zip and its own parts raise
        raise UserError(f"{path}: a damaged Word document ({_first_line(error)})") from None


def _check_parts(path: Path) -> None:
    """Bound what it unpacks to, before anything is unpacked: a part cannot be larger than the archive says."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        with path.open("rb") as file:
            old = file.read(4) == b"\xd0\xcf\x11\xe0"
        if old:
            what = "protected by a password, or an older Word document; save it as .docx without a password"
            raise UserError(f"{path}: {what}") from None
        raise UserError(f"{path}: not a Word document, or a damaged one ({_first_line(error)})") from None
    xml = sum(part.file_size for part in parts if part.filename.lower().endswith((".xml", ".rels")))
    if xml > LARGEST_XML or sum(part.file_size for part in parts) > LARGEST_WHOLE:
        limits = f"{LARGEST_XML >> 20} MB of text or {LARGEST_WHOLE >> 20} MB in all"
        raise UserError(f"{path}: unpacks to more than {limits}, the most that is read; split it")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


class _Body:
    """The text of the body, gathered block by block."""

    def __init__(self, whole: Any) -> None:
        self.pieces: list[str] = []
        self.length = self.paragraphs = 0
        self.marks: list[tuple[int, int]] = []
        self.pages: list[tuple[int, int]] = []
        self.headings: list[Heading] = []
        self.hidden: list[Hidden] = []
        self.styles = _Styles(whole.styles.element)
        self.shaded = 0  # open tables or cells that may have a colour of their own
        self.notes = _notes(whole)
        self.due: list[Any] = []  # notes that were referred to

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def block(self, element: Any, separator: str = "\n\n") -> None:
        if element.tag == _W + "p":
            self._paragraph(element, separator)
        elif element.tag == _W + "tbl":
            self._table(element)
        elif element.tag not in _LEFT_OUT:
            for child in element:  # content controls and the like
                self.block(child, separator)

    def put_notes(self) -> None:
        due, self.due = self.due, []
        for note in due:
            for paragraph in note.iter(_W + "p"):
                self.paragraphs -= 1  # it counts as a part of the one that refers to it
                self._paragraph(paragraph, "\n\n")

    def _table(self, table: Any) -> None:
        style = table.find(f"{_W}tblPr/{_W}tblStyle")
        coloured = (style.get(_W + "val") if style is not None else None) not in _PLAIN_TABLES
        self.shaded += coloured
        for number, row in enumerate(table.iter(_W + "tr")):
            separator = "\n" if number else "\n\n"
            for cell in (cell for cell in row.iter(_W + "tc") if next(cell.iterancestors(_W + "tr")) is row):
                filled = _fills(cell.find(f"{_W}tcPr/{_W}shd"))
                self.shaded += filled
                before = self.length
                for part in cell:
                    if part.tag != _W + "tbl":  # the rows of an inner table come as rows of their own
                        self.block(part, separator)
                        separator = " " if self.length > before else separator
                self.shaded -= filled
                separator = "\t" if self.length > before or separator == "\t" else separator
        self.shaded -= coloured

    def _paragraph(self, paragraph: Any, separator: str) -> None:
        self.paragraphs += 1
        pieces, outer = self.pieces, self.length
        self.pieces = []
        gap = len(separator) if outer else 0
        hidden, pages = len(self.hidden), len(self.pages)
        self.length = outer + gap
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        named = style.get(_W + "val") if style is not None else None
        shaded = _fills(paragraph.find(f"{_W}pPr/{_W}shd"))
        self.shaded += shaded
        self._runs(paragraph, self.styles.hidden(named))
        self.shaded -= shaded
        text = "".join(self.pieces)
        self.pieces = pieces
        if not text.strip():
            self.length = outer
            del self.hidden[hidden:]
            self.pages[pages:] = [(outer, number) for _, number in self.pages[pages:]]
            return
        self.pieces += [separator, text] if gap else [text]
        self.marks.append((outer + gap, self.paragraphs))
        if level := self.styles.level(paragraph, named):
            start = outer + gap + len(text) - len(text.lstrip())
            self.headings.append(Heading(start, level, text.strip()))

    def _runs(self, element: Any, reason: str) -> None:
        """The text of an element; `reason`: why it is not seen."""
        for child in element:
            tag = child.tag
            if tag in _LEFT_OUT or not isinstance(tag, str):
                continue
            if tag == _W + "t":
                self._put(child.text or "", reason)
            elif tag in _BREAKS:
                self._put(_BREAKS[tag], "")
            elif tag in _REFERENCES:
                key = (_REFERENCES[tag], child.get(_W + "id"))
                self.due += [self.notes.pop(key)] if key in self.notes else []
            elif tag == _W + "lastRenderedPageBreak":
                self.pages.append((self.length, len(self.pages) + 2))
            elif tag == _W + "r":
                self._runs(child, self._reason(child, reason))
            elif tag == _W + "p" and self.length:  # of a text box
                self._put("\n", "")
                self._runs(child, reason)
            else:
                self._runs(child, reason)

    def _reason(self, run: Any, reason: str) -> str:
        format = run.find(_W + "rPr")
        if format is None:
            return reason
        style = format.find(_W + "rStyle")
        by_style = self.styles.hidden(style.get(_W + "val")) if style is not None else ""
        own = _formatted(format)
        if own == "white on white" and (self.shaded or _fills(format.find(_W + "shd"))):
            own = ""
        return "" if own == "shown" else own or by_style or reason

    def _put(self, text: str, reason: str) -> None:
        if reason and text.strip():
            joins = self.hidden and self.hidden[-1].end == self.length and self.hidden[-1].reason == reason
            start = self.hidden.pop().start if joins else self.length
            self.hidden.append(Hidden(start, self.length + len(text), reason))
        self.pieces.append(text)
        self.length += len(text)


def _notes(whole: Any) -> dict[tuple[str, str], Any]:
    """The footnotes and endnotes, by kind and id; a damaged part has none."""
    from docx.oxml import parse_xml

    found: dict[tuple[str, str], Any] = {}
    for relation in whole.part.rels.values():
        kind = relation.reltype.rpartition("/")[2].removesuffix("s")
        if kind in _REFERENCES.values() and not relation.is_external:
            try:
                notes = parse_xml(relation.target_part.blob)
            except Exception:
                continue
            found |= {(kind, note.get(_W + "id")): note for note in notes.iterchildren(_W + kind)}
    return found


def _fills(shading: Any) -> bool:
    """Whether it gives a background that is not white."""
    return shading is not None and (shading.get(_W + "fill") or "auto").upper() not in ("AUTO", "FFFFFF")


def _formatted(format: Any) -> str:
    """Why text of this format is not seen; "shown" if it says that it is."""
    vanish = format.find(_W + "vanish")
    if vanish is not None:
        return "shown" if vanish.get(_W + "val") in ("0", "false", "off") else "hidden text"
    size, colour = format.find(_W + "sz"), format.find(_W + "color")
    if size is not None and (size.get(_W + "val") or "").isdigit() and int(size.get(_W + "val")) <= _TINY:
        return "tiny type"
    white = colour is not None and (colour.get(_W + "val") or "").upper() == "FFFFFF"
    return "white on white" if white and format.find(_W + "highlight") is None else ""


class _Styles:
    """What styles say about headings and about hidden text, with what they are based on."""

    def __init__(self, element: Any) -> None:
        self.known = {style.get(_W + "styleId"): style for style in element.iterchildren(_W + "style")}

    def level(self, paragraph: Any, name: str | None) -> int:
        """The level of a heading; 0: none."""
        outline = paragraph.find(f"{_W}pPr/{_W}outlineLvl")
        if outline is not None:
            return _outlined(outline)
        for style in self._chain(name):
            named, outline = style.find(_W + "name"), style.find(f"{_W}pPr/{_W}outlineLvl")
            title = (named.get(_W + "val") or "").lower() if named is not None else ""
            if found := _HEADING.fullmatch(title):
                return int(found[1])
            if title == "title":
                return 1
            if outline is not None:
                return _outlined(outline)
        return 0

    def hidden(self, name: str | None) -> str:
        for style in self._chain(name):
            format = style.find(_W + "rPr")
            if format is not None and (found := _formatted(format)) and found != "white on white":
                return "" if found == "shown" else found
        return ""

    def _chain(self, name: str | None) -> Iterator[Any]:
        for _ in range(12):  # a style may be based on itself
            if (style := self.known.get(name)) is None:
                return
            yield style
            based = style.find(_W + "basedOn")
            name = based.get(_W + "val") if based is not None else None


def _outlined(outline: Any) -> int:
    value = outline.get(_W + "val") or ""
    return int(value) + 1 if value.isdigit() and int(value) < 9 else 0
