"""PDF, page by page, by pypdf: a place is a page, and headings are the entries of its outline that its pages show.

Text comes as the file has it, with its line breaks. Hidden text is found as far as pdf_hidden.py says. A page that is
scanned, whose text lies without ink behind the picture of it, is not hidden. Pages without any text are counted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Document, Heading, Hidden
from seqloom.retrieve.reading.limits import LARGEST, check_size, too_large
from seqloom.retrieve.reading.pdf_hidden import Watch

_NO_CHARACTERS = re.compile("[\x00\ud800-\udfff]")
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
        self.marks: list[tuple[int, int]] = []
        self.hidden: list[Hidden] = []
        self.notes: list[str] = []
        pieces: list[str] = []
        length, empty, failed = 0, 0, 0
        count = len(reader.pages)
        for number in range(count):
            try:
                text, hidden = _page(reader.pages[number])
            except Exception:
                failed += 1
                continue
            if not (bare := text.strip()):
                empty += 1
                continue
            if pieces:  # a sentence may go on over the page
                pieces.append("\n\n" if pieces[-1].endswith(_ENDS) else "\n")
                length += len(pieces[-1])
            shift = length - (len(text) - len(text.lstrip()))
            self.marks.append((length, number + 1))
            self.hidden += [Hidden(max(length, start + shift), end + shift, reason) for start, end, reason in hidden]
            pieces.append(bare)
            length += len(bare)
            if length > LARGEST:
                raise too_large(path)
        self.text = "".join(pieces)
        if not pieces:
            reason = "its pages are damaged" if failed else "no text in it: scanned pages need OCR"
            raise UserError(f"{path}: {reason}")
        if empty:
            self.notes.append(f"{empty:,} of {count:,} pages have no text (scanned pages need OCR)")
        if failed:
            self.notes.append(f"{failed:,} of {count:,} pages are damaged and were left out")


def _page(page: Any) -> tuple[str, list[tuple[int, int, str]]]:
    box = page.mediabox
    watch = Watch((float(box.left), float(box.bottom), float(box.right), float(box.top)))
    text = page.extract_text(
        visitor_operand_before=watch.before, visitor_operand_after=watch.after, visitor_text=watch.text
    )
    text = _NO_CHARACTERS.sub("\ufffd", text)
    scanned = watch.images and watch.without_ink == watch.shown
    return text, [] if scanned or watch.length != len(text) else watch.hidden


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
    try:
        return " ".join(_NO_CHARACTERS.sub("", str(reader.metadata.title or "")).split()) if reader.metadata else ""
    except Exception:
        return ""


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
