"""CoNLL columns: a word and its tags per line, an empty line after each sentence.

Tabs separate the columns if the first line has one, otherwise white space does. `-DOCSTART-` lines and CoNLL-U comments
(`# key = value`), multiword tokens (`3-4`) and empty nodes (`3.1`) are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.files import read_lines
from seqloom.data.role_names import flag
from seqloom.data.shapes.tagged.schemes import parse

DOCUMENT = "-DOCSTART-"
COMMENT = re.compile(r"#\s*[\w.:-]+(\s+[\w.:-]+)*\s*=|#\s*newdoc|#\s*newpar")
NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # ids of multiword tokens and empty nodes
CONLLU = 10  # columns
EXAMINED = 200  # lines examined to tell columns from plain text


class Sentence(NamedTuple):
    """Words and their tags; from running text, also that text and the (begin, end) of each word in it."""

    line: int
    words: list[str]
    tags: list[str]  # empty: unknown
    text: str | None = None
    places: list[tuple[int, int]] | None = None


def read_columns(path: Path, word: int, tag: int | None) -> Iterator[Sentence]:
    """`word`, `tag`: column numbers, from 1, or from the end: -1 is the last; no tag: words only."""
    first = 0  # line of the sentence's first word
    words: list[str] = []
    tags: list[str] = []
    for number, fields in read_cells(path):
        if fields is None:
            if words:
                yield Sentence(first, words, tags)
                words, tags = [], []
            continue
        first = first if words else number
        words.append(_cell(path, number, fields, word, "word"))
        if tag is not None:
            tags.append(_cell(path, number, fields, tag, "tag"))
            if _place(fields, word) == _place(fields, tag):
                which = f"words and tags are both column {word} of {len(fields)}"
                raise UserError(f"{path}:{number}: {which}; choose another: {flag('tags', 'NUMBER')}")
    if words:
        yield Sentence(first, words, tags)


def read_cells(path: Path) -> Iterator[tuple[int, list[str] | None]]:
    """The columns of each line; None where a sentence ends."""
    tabs, width, known = False, 0, 0
    for number, line in enumerate(read_lines(path), 1):
        text = line.rstrip("\r\n")
        if not text.strip():
            yield number, None
            continue
        if text.startswith("#") and COMMENT.match(text):
            continue
        if not width:
            tabs = "\t" in text
        fields = [field.strip() for field in text.split("\t")] if tabs else text.split()
        if fields[0] == DOCUMENT:
            yield number, None
            continue
        if not width:
            width, known = len(fields), number
        if len(fields) != width:
            way_out = "all lines need the same columns, and an empty line must end each sentence"
            raise UserError(f"{path}:{number}: {_columns(len(fields))}, but line {known} has {width}; {way_out}")
        if tabs and width == CONLLU and NOT_A_WORD.fullmatch(fields[0]):
            continue
        yield number, fields


def _cell(path: Path, number: int, fields: list[str], column: int, what: str) -> str:
    place = _place(fields, column)
    if not 0 <= place < len(fields) or column == 0:
        way_out = f"give a number from 1 to {len(fields)}, or -1 for the last: {flag(f'{what}s', 'NUMBER')}"
        raise UserError(f"{path}:{number}: no column {column}; this line has {_columns(len(fields))}; {way_out}")
    if what == "tag" and len(fields) == 1:
        raise UserError(f"{path}:{number}: the word {quoted(fields[0])} has no tag; give two columns: word and tag")
    if not fields[place]:
        raise UserError(f"{path}:{number}: no {what} in {'the last column' if column == -1 else f'column {column}'}")
    return fields[place]


def _place(fields: list[str], column: int) -> int:
    return column - 1 if column > 0 else len(fields) + column


def looks_like_columns(path: Path) -> bool:
    """Whether a text is in columns: as many on each line, with empty lines between, or with tags at the ends."""
    lines = [line.strip() for line in islice(read_lines(path), EXAMINED)]
    while lines and not lines[-1]:
        lines.pop()
    fields = [line.split("\t") if "\t" in line else line.split() for line in lines if line and line[0] != "#"]
    fields = [cells for cells in fields if cells[0] != DOCUMENT]
    if not fields or any(len(cells) != len(fields[0]) for cells in fields):
        return False
    if "" in lines and len(fields) > lines.count(""):
        return True
    return len(fields[0]) > 1 and all(parse(cells[-1])[0] for cells in fields)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
