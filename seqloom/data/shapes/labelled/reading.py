"""Labelled texts, one or two per row: re-read from the beginning as often as needed, never held in memory.

They come from columns of a table (CSV, TSV, JSONL) or from a sample. Several labels of one row are a list in JSONL, and
in a table one cell with a separator.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from seqloom.core.errors import UserError
from seqloom.data.columns import Cells, clean, find_columns
from seqloom.data.files import check_file, read_lines, suffix
from seqloom.data.measured import Measured, Measures
from seqloom.data.samples import find_sample
from seqloom.data.shapes.labelled.spelling import spelling_reason
from seqloom.data.survey import TextSurvey, survey_texts
from seqloom.data.text import Marked, Source, as_documents


class Labelled(NamedTuple):
    """A row: its line, one or two texts, and its labels."""

    line: int
    texts: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class LabelledMeasures(Measures):
    labels: Counter[str]  # number of rows with each


class LabelledSource(Measured[LabelledMeasures]):
    """Rows stripped of surrounding white space; those with an empty text are left out, and counted."""

    unit = "rows"

    def __init__(self, name: str, read: Callable[[], Iterator[Labelled]], multi: bool = False) -> None:
        self.name = name  # what the user typed
        self.multi = multi  # a row may have any number of labels, not exactly one
        self._read = read

    def rows(self) -> Iterator[Labelled]:
        return (row for row in self.all() if all(row.texts))

    def all(self) -> Iterator[Labelled]:
        return self._read()

    def key(self, row: Labelled) -> str:
        return "\0".join(row.texts)

    def like(self, name: str, read: Callable[[], Iterator[Labelled]]) -> LabelledSource:
        return LabelledSource(name, read, self.multi)

    def side(self, which: int, lower: bool = False) -> Source:
        """The first or second text of all rows, as documents in order."""

        def read() -> Marked:
            texts = (row.texts[which] for row in self.rows())
            return as_documents(text.lower() for text in texts) if lower else as_documents(texts)

        return Source(f"{self.name} (text {which + 1})", read, documents=True)

    @cached_property
    def survey(self) -> TextSurvey:
        """How long the texts are; two texts of a row count as one."""
        return survey_texts(" ".join(row.texts) for row in self.rows())

    @cached_property
    def spelling(self) -> str:
        """Why characters suit these texts better than words; empty if they do not."""
        return spelling_reason(*self.sampled(), self.survey.mean("words"))

    def sampled(self, most: int = 20_000) -> tuple[list[str], list[str]]:
        """Evenly spaced rows: their texts, two as one, and their labels, several as one."""
        every = -(-self.count // most)
        rows = [row for n, row in enumerate(self.rows()) if n % every == 0]
        return [" ".join(row.texts) for row in rows], ["\n".join(row.labels) for row in rows]

    @property
    def labels(self) -> Counter[str]:
        """The number of rows with each label."""
        return self.measures.labels

    def measure(self) -> LabelledMeasures:
        count = dropped = length = 0
        digest, labels = hashlib.sha256(), Counter[str]()
        for row in self.all():
            if not all(row.texts):
                dropped += 1
                continue
            texts = "\0".join(row.texts).encode()
            digest.update(texts + b"\0" + "\n".join(row.labels).encode() + b"\0")
            count, length = count + 1, length + len(texts) - len(row.texts) + 1
            labels.update(row.labels)
        return LabelledMeasures(count, dropped, length, digest.hexdigest(), labels)


def open_labelled(
    spec: str, text: str = "text", label: str = "label", second: str | None = None, separator: str | None = None
) -> LabelledSource:
    """CSV, TSV or JSONL with one or two text columns and a label column; `sample:NAME`; also compressed.

    `separator`: rows have any number of labels, separated by this in a table; None: exactly one.
    """
    columns = [text, second] if second else [text]
    read = _find(spec, [*columns, label], label)

    def rows() -> Iterator[Labelled]:
        for line, (*texts, cell) in read():
            labels = _labels(cell, separator)
            if separator is None and len(labels) != 1:
                way_out = "; if rows have several, set data.separator" if labels else ""
                count = f"{len(labels)} labels" if labels else "no label"
                raise UserError(f"{spec}:{line}: {count}, expected one{way_out}")
            yield Labelled(line, tuple(map(clean, texts)), labels)

    source = LabelledSource(spec, rows, multi=separator is not None)
    if next(source.rows(), None) is None:
        reason = f"all {source.dropped:,} have an empty text" if source.dropped else "the file has no rows"
        raise UserError(f"{spec}: no rows to learn from; {reason}")
    return source


def open_unlabelled(spec: str, text: str = "text", second: str | None = None) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Rows of (line, texts) to predict from: as in `open_labelled`, labels optional; otherwise line by line."""
    columns = [text, second] if second else [text]
    rows = _find(spec, columns, None)()
    return ((line, tuple(map(clean, texts))) for line, texts in rows)


def _labels(cell: str, separator: str | None) -> tuple[str, ...]:
    """The distinct labels in a cell; a JSONL list has one per line."""
    lines = cell.split("\n") if separator is None else cell.replace(separator, "\n").split("\n")
    return tuple(dict.fromkeys(label for part in lines if (label := part.strip())))


def _find(spec: str, columns: Sequence[str], label: str | None) -> Callable[[], Cells]:
    """A reader of these columns; without a label, also of plain text, line by line."""
    if spec.startswith("sample:"):
        sample = find_sample(spec, "labelled")
        return lambda: ((number, [*row][: len(columns)]) for number, row in enumerate(sample.read(), 1))
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give one file: CSV, TSV or JSONL")
    texts = len(columns) - (label is not None)
    roles = [*("text", "second")[:texts], "label"]
    if read := find_columns(path, list(columns), loose=() if label is None else (label,), roles=roles):
        return read
    if label is None:
        return lambda: ((number, [line]) for number, line in enumerate(read_lines(path), 1))
    if suffix(path) == ".json":
        raise UserError(f"{path}: not read as JSON; write one object per line: jq -c '.[]' {path.name} > rows.jsonl")
    raise UserError(
        f"{path}: plain text has no labels; give CSV, TSV or JSONL, or number the columns of tab-separated text: "
        "--columns text=2,label=1"
    )
