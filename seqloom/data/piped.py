"""Data from standard input: spooled to a temporary file, because files are read more than once.

A file's name says what it holds; here the first lines do: JSON objects, tab-separated text, CSV under a header, or
plain text.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from seqloom.core.errors import UserError
from seqloom.data.files import read_lines
from seqloom.data.header import is_header
from seqloom.data.rows import find_delimiter

_FIRST = 100  # lines that are looked at


@contextmanager
def spooled(stream: BinaryIO, numbered: bool = False) -> Iterator[Path]:
    """A file with this content, whose name ends as its format asks; `numbered`: columns are given by number, so that
    it is a table even if it has no header."""
    with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        if not path.stat().st_size:
            raise UserError("--data -: standard input is empty")
        try:
            path = path.rename(path.with_suffix(_kind(path, numbered)))
            yield path
        except UserError as error:  # nobody knows of this file
            error.args = (str(error).replace(str(path), "standard input"),)
            raise


def _kind(path: Path, numbered: bool) -> str:
    lines = [line for line in islice(read_lines(path), _FIRST) if line.strip()]
    if lines and lines[0].lstrip().startswith("{"):
        return _json_kind(lines[0])
    if len({line.count("\t") for line in lines}) == 1 and "\t" in lines[0]:
        return ".tsv"
    try:
        rows = [row for row in csv.reader(lines, delimiter=find_delimiter(path), strict=True) if row]
    except csv.Error:
        return ".txt"
    even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return ".csv" if even and (numbered or is_header(rows[0], rows[1:], usual=False)) else ".txt"


def _json_kind(line: str) -> str:
    """One object per line, or one over many lines, as in the SQuAD format."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # reported when it is read
        return ".json"
    return ".json" if isinstance(found.get("data"), list) else ".jsonl"
