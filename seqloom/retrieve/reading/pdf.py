"""PDF, page by page, by pypdf: a place is a page, and headings are the entries of its outline that its pages show.

Text comes as the file has it, with its line breaks, but without what is only there for the page (pdf_text.py). Hidden
text is found as far as pdf_hidden.py says. A page that is scanned, whose text lies without ink behind the picture of
it, is not hidden. Pages without any text are counted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Document, Heading, Hidden
from seqloom.retrieve.reading.limits import LARGEST, check_size, too_large
from seqloom.retrieve.reading.pdf_hidden import Watch
from seqloom.retrieve.reading.pdf_text import plain, running_lines, whole_words

_ENDS = tuple(".!?:;。！？：；…”\"')）」』")
_OUTLINE = 5000  # entries that are looked at


def read(path: Path, name: str) -> Iterator[Document]:
    check_size(path)
    with _quiet():
        reader = _opened(path)
        pages = _Pages(path, reader)
        headings = _headings(reader, pages)
        title = _title(reader)
    top = next((heading.text for heading in headings if heading.level == 1), "")
    yield Document(
        name, pages.text, title or top or path.name, "page", tuple(pages.marks) or ((0, 1),), tuple(headings),
        tuple(pages.hidden), tuple(pages.notes),
    )  # fmt: skip


def _opened(path: Path) -> Any:
    try:
        import pypdf
        from pypdf.errors import DependencyError
    except ImportError:
        raise UserError(f"{path}: PDF needs the pypdf package: pip install 'seqloom[retrieve]'") from None
    try:
        reader = pypdf.PdfReader(path)
        opened = not reader.is_encrypted or bool(reader.decrypt(""))
        if opened and len(reader.pages):
            return reader
    except DependencyError:
        way_out = "pip install cryptography, or save a copy without protection"
        raise UserError(f"{path}: encrypted with AES, which needs one more package: {way_out}") from None
    except Exception as error:  # pypdf lets through whatever damaged objects raise
        raise UserError(f"{path}: a damaged PDF ({_first_line(error)}); save or download it again") from None
    raise UserError(f"{path}: " + ("no pages in it" if opened else "needs a password; save a copy without one"))


class _Pages:
    """The text of all pages, joined."""

    def __init__(self, path: Path, reader: Any) -> None:
        self.notes: list[str] = []
        found: list[_Page] = []
        length, empty, failed = 0, 0, 0
        count = len(reader.pages)
        for number in range(count):
            try:
                page = _page(reader.pages[number], number + 1)
            except Exception:
                failed += 1
                continue
            if not page.text:
                empty += 1
                continue
            found.append(page)
            length += len(page.text)
            if length > LARGEST:
                raise too_large(path)
        if not found:
            reason = "its pages are damaged; save it again" if failed else "no text in it: scanned pages need OCR"
            raise UserError(f"{path}: {reason}")
        self._join(found)
        if empty:
            self.notes.append(f"{empty:,} of {count:,} pages have no text (scanned pages need OCR)")
        if failed:
            self.notes.append(f"{failed:,} of {count:,} pages are damaged and were left out")

    def _join(self, pages: list[_Page]) -> None:
        pieces: list[str] = []
        marks, hidden, length = [], [], 0
        kept = running_lines([(page.number, page.text) for page in pages])
        for page, (start, end) in zip(pages, kept, strict=True):
            text = page.text[start:end].strip()
            if not text:
                continue
            if pieces:  # a sentence may go on over the page
                pieces.append("\n\n" if pieces[-1].endswith(_ENDS) else "\n")
                length += len(pieces[-1])
            marks.append((length, page.number))
            start = page.text.index(text, start)
            shift, last = length - start, length + len(text)
            hidden += [
                Hidden(max(length, one + shift), min(last, other + shift), reason)
                for one, other, reason in page.hidden
                if one < start + len(text) and other > start
            ]
            pieces.append(text)
            length = last
        self.text, moved = whole_words("".join(pieces))
        self.marks = [(moved(start), number) for start, number in marks]
        self.hidden = [Hidden(moved(start), moved(end), reason) for start, end, reason in hidden]


class _Page(NamedTuple):
    number: int
    text: str
    hidden: list[tuple[int, int, str]]


def _page(page: Any, number: int) -> _Page:
    box = page.mediabox
    watch = Watch((float(box.left), float(box.bottom), float(box.right), float(box.top)))
    text = plain(
        page.extract_text(
            visitor_operand_before=watch.before, visitor_operand_after=watch.after, visitor_text=watch.text
        )
    )
    scanned = watch.images and watch.without_ink == watch.shown
    bare, shift = text.strip(), len(text) - len(text.lstrip())
    unseen = [] if scanned or watch.length != len(text) else watch.hidden
    return _Page(number, bare, [(max(0, start - shift), end - shift, reason) for start, end, reason in unseen])


def _headings(reader: Any, pages: _Pages) -> list[Heading]:
    """Entries of the outline, where their page has a line that begins with them."""
    starts = {number: start for start, number in pages.marks}
    ends = {number: start for (_, number), (start, _) in zip(pages.marks, pages.marks[1:], strict=False)}
    found: dict[int, Heading] = {}
    try:
        for level, entry in _entries(reader.outline):
            number = (reader.get_destination_page_number(entry) or 0) + 1
            title = " ".join(str(entry.title or "").split())
            if title and number in starts:
                pattern = r"^\W*?(?:[\d.]+\s+)?(" + r"\s+".join(map(re.escape, title.split())) + ")"
                line = re.compile(pattern, re.MULTILINE | re.IGNORECASE)
                if place := line.search(pages.text, starts[number], ends.get(number, len(pages.text))):
                    found.setdefault(place.start(1), Heading(place.start(1), min(level, 6), place[1]))
    except Exception:  # a damaged outline is none
        return []
    return [found[start] for start in sorted(found)]


def _entries(outline: Any) -> Iterator[tuple[int, Any]]:
    waiting, seen = [(1, iter(outline))], 0
    while waiting and seen < _OUTLINE:
        level, entries = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
        elif isinstance(entry, list):
            waiting.append((level + 1, iter(entry)))
        else:
            seen += 1
            yield level, entry


def _title(reader: Any) -> str:
    """Empty if it has none, or one that its program wrote for want of another."""
    try:
        title = " ".join(plain(str(reader.metadata.title or "")).split()) if reader.metadata else ""
    except Exception:
        return ""
    return "" if title.casefold() == "untitled" else title


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that pypdf logs about every irregularity."""
    log = logging.getLogger("pypdf")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
