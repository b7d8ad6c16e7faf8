"""Tables (CSV, TSV, JSONL): every row is a document, and a place is a row, counted from 1 below the header.

The text column is the one that was given, or that is found as for every other table. A title column is the heading of
its row, and part of its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seqloom.core.errors import UserError, unknown
from seqloom.core.rows import Json
from seqloom.data.columns import NO_HEADER, as_text, clean, whole_rows
from seqloom.data.files import suffix
from seqloom.data.roles import Table, look, the_text
from seqloom.data.rows import READERS, text_of
from seqloom.retrieve.document import Document, Heading
from seqloom.retrieve.reading.limits import LARGEST_TABLE, check_lines, check_size

ROLES = ("text", "title")
KEYS = ("_id", "id")
TITLES = {"title", "headline", "subject", "标题", "题目", "新闻标题"}


def read(path: Path, name: str, columns: Mapping[str, str] | None = None) -> Iterator[Document]:
    """`columns`: which column is the text, and which the title. Rows without text are left out, as are those that are
    not valid, which are counted and noted."""
    given = dict(columns or {})
    for role in given.keys() - set(ROLES):
        raise unknown("role of a column", role, ROLES)
    check_size(path, LARGEST_TABLE)
    check_lines(path)
    table = look(str(path), given, ROLES, forgiving=True)
    if table is None:  # nothing but a header, or damaged, which reading it reports
        for _ in READERS[suffix(path)](path):
            break
        raise UserError(f"{path}: no rows in it")
    column = given.get("text") or _text_column(table)
    title = given.get("title") or _title_column(table, column)
    refused: list[str] = []
    waiting = None  # the latest document: the last of all has the note
    for document in _rows(path, name, column, title, column in table.names, refused):
        if waiting is not None:
            yield waiting
        waiting = document
    if waiting is None:
        raise UserError(refused[0] if refused else f"{path}: no text in column {column!r}")
    yield replace(waiting, notes=_left_out(path, refused)) if refused else waiting


def _rows(path: Path, name: str, column: str, title: str | None, found: bool, refused: list[str]) -> Iterator[Document]:
    """`found`: a look at the file has found the column; `refused`: gets an entry for every row that is not valid, the
    first with the reason."""
    lost = 0  # rows that the reader could not read: they count, too

    def refuse(error: UserError) -> None:
        nonlocal lost
        lost += 1
        refused.append("" if refused else str(error))

    for number, (line, row) in enumerate(whole_rows(path, [column], refuse) or (), 1):
        if number == 1 and not found:
            text_of(row, column, f"{path}:{line}", NO_HEADER, "text")
        try:
            text = _cell(row, column, f"{path}:{line}")
            heading = _cell(row, title, f"{path}:{line}") if title else ""
        except UserError as error:
            refused.append("" if refused else str(error))
            continue
        if text:
            yield _document(f"{name}#{number + lost}", number + lost, text, heading, _key(row))


def _left_out(path: Path, refused: Sequence[str]) -> tuple[str, ...]:
    many = "1 row is" if len(refused) == 1 else f"{len(refused):,} rows are"
    rest = ", nor can what follows be read" if "not valid CSV" in refused[0] else ""
    return (f"{many} not valid and left out{rest}: line {refused[0].removeprefix(f'{path}:')}",)


def _document(name: str, number: int, text: str, title: str, key: str) -> Document:
    title = " ".join(title.split())
    whole = f"{title}\n\n{text}" if title else text
    headings = (Heading(0, 1, title),) if title else ()
    return Document(name, whole, title or name, "row", ((0, number),), headings, key=key)


def _key(row: Json) -> str:
    """The id that a row gives itself, which judgements name; empty if there is none."""
    found = next((row[name] for name in KEYS if row.get(name) not in (None, "")), "")
    return str(found) if isinstance(found, str | int) else ""


def _text_column(table: Table) -> str:
    if table.has("text"):
        return "text"
    title = table.find(TITLES, table.columns)
    others = [column for column in table.columns if column is not title and column.wordy]
    return the_text(table, others or table.columns)[0].name


def _title_column(table: Table, text: str) -> str | None:
    found = table.find(TITLES, (column for column in table.columns if column.name != text))
    return found.name if found else None


def _cell(row: Json, column: str, place: str) -> str:
    """Empty where there is nothing; numbers and lists as text."""
    value = as_text(row.get(column))
    return "" if value is None else clean(text_of({column: value}, column, place, role="text"))
