"""Files as documents: one file of this folder for each format.

A reader is a function from a path, and the name that the document has, to documents. What cannot be read is a
`UserError` of one line. Nothing in a document is ever run, and nothing that it points to is opened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.files import check_file, declare, read_lines
from seqloom.data.refusals import Undecodable
from seqloom.data.rows import READERS
from seqloom.retrieve.document import Document
from seqloom.retrieve.reading import docx, folder, html, limits, markdown, pdf, table, text
from seqloom.retrieve.reading.invisible import zero_width

Reader = Callable[[Path, str], Iterator[Document]]

KINDS: dict[str, Reader] = {
    **dict.fromkeys(sorted(text.PROSE | text.CODE), text.read),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), markdown.read),
    **dict.fromkeys((".html", ".htm", ".xhtml"), html.read),
    **dict.fromkeys(READERS, table.read),
    ".pdf": pdf.read,
    ".docx": docx.read,
}


def files(path: Path, skipped: Counter[str] | None = None) -> Iterator[tuple[Path, str]]:
    """The files of a folder that can be read, and their names relative to it; `skipped` counts the others by suffix."""
    return folder.files(path, set(KINDS), text.NAMES, Counter() if skipped is None else skipped)


def read(path: Path, name: str, columns: Mapping[str, str] | None = None) -> Iterator[Document]:
    """The documents of a file, of a table one per row. `columns`: which columns of tables are `text` and `title`.

    A text that is not UTF-8 is read in the encoding that it is in, if that is clear, and a note says which.
    """
    try:
        yield from _documents(path, name, columns)
    except Undecodable as error:  # comes before any document
        if error.encoding is None:
            raise UserError(_NO_SUCH_OPTION.sub("", str(error))) from None
        yield from _in_encoding(error.encoding, path, name, columns)


def _in_encoding(encoding: str, path: Path, name: str, columns: Mapping[str, str] | None) -> Iterator[Document]:
    declare(str(path), encoding)
    notes: tuple[str, ...] = () if encoding == "utf-8" else (f"not UTF-8: read as {encoding}",)
    try:
        for document in _documents(path, name, columns):
            yield replace(document, notes=(*notes, *document.notes)) if notes else document
            notes = ()
    except Undecodable as error:
        raise UserError(_NO_SUCH_OPTION.sub("", str(error))) from None
    finally:
        declare(str(path), None)


def _documents(path: Path, name: str, columns: Mapping[str, str] | None) -> Iterator[Document]:
    kind = folder.kind_of(path, set(KINDS), text.NAMES)
    if kind is None:
        raise UserError(f"{path}: no reader for {path.suffix or 'files without a suffix'}; known: {', '.join(_MAIN)}")
    reader = KINDS[kind]
    for document in table.read(path, name, columns) if reader is table.read else reader(path, name):
        if not document.text.strip():
            raise UserError(f"{path}: no text in it")
        hidden = sorted({*document.hidden, *zero_width(document.text)})
        yield replace(document, hidden=tuple(hidden)) if hidden else document


def lines(path: Path) -> Iterator[str]:
    """Of a text file that is no document: queries, judgements, questions."""
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give a file")
    try:
        yield from read_lines(path)
    except Undecodable as error:
        raise UserError(_NO_SUCH_OPTION.sub("", str(error))) from None


def largest(path: Path) -> int:
    """How many bytes of this kind of file are read."""
    kind = folder.kind_of(path, set(KINDS), text.NAMES)
    return limits.LARGEST_TABLE if kind in READERS else limits.LARGEST


_NO_SUCH_OPTION = re.compile(",? or (?:try|give)[^;]*--encoding.*")  # files of one folder differ in their encodings
_MAIN = (".txt", ".md", ".html", ".pdf", ".docx", ".csv", ".tsv", ".jsonl", "source code")
