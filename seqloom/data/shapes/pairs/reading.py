"""Pairs of texts, source and target: re-read from the beginning as often as needed, never held in memory.

They come from two columns of a table (CSV, TSV, JSONL), from two parallel files, a gettext catalogue, or a sample.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from seqloom.core.errors import UserError
from seqloom.data.columns import Cells, clean, find_columns, whole_rows
from seqloom.data.files import check_file, read_lines, suffix
from seqloom.data.measured import Measured, Measures
from seqloom.data.rows import Rows
from seqloom.data.samples import find_sample
from seqloom.data.shapes.pairs.catalogues import read_catalogue
from seqloom.data.survey import TextSurvey, survey_texts
from seqloom.data.text import Marked, Source, as_documents

CATALOGUES = {".po", ".pot"}

Pair = tuple[int, str, str]  # line, source, target


class PairSource(Measured[Measures]):
    """Rows of (line, source, target), stripped of surrounding white space. Rows with an empty side are left out; in a
    catalogue also the header, and fuzzy and obsolete entries."""

    def __init__(self, name: str, read: Callable[[], Cells]) -> None:
        self.name = name  # what the user typed
        self._read = read

    unit = "pairs"

    def rows(self) -> Iterator[Pair]:
        return (row for row in self.all() if row[1] and row[2])

    def all(self) -> Iterator[Pair]:
        return ((line, clean(source), clean(target)) for line, (source, target) in self._read())

    def key(self, row: Pair) -> str:
        return row[1]

    def like(self, name: str, read: Callable[[], Iterator[Pair]]) -> PairSource:
        return PairSource(name, lambda: ((line, [source, target]) for line, source, target in read()))

    def side(self, which: Literal["source", "target"]) -> Source:
        """One side as documents, one per row, in order."""

        def read() -> Marked:
            return as_documents(source if which == "source" else target for _, source, target in self.rows())

        return Source(f"{self.name} ({which})", read, documents=True)

    @cached_property
    def surveys(self) -> tuple[TextSurvey, TextSurvey]:
        """How long the sources and the targets are."""
        return survey_texts(source for _, source, _ in self.rows()), survey_texts(target for *_, target in self.rows())

    def measure(self) -> Measures:
        count = dropped = length = 0
        digest = hashlib.sha256()
        for _, source, target in self.all():
            if not (source and target):
                dropped += 1
                continue
            data = f"{source}\0{target}\0".encode()
            digest.update(data)
            count += 1
            length += len(data) - 2
        return Measures(count, dropped, length, digest.hexdigest())


class SourceTexts:
    """Rows of (line, source) to predict from; empty ones are left out."""

    def __init__(self, name: str, read: Callable[[], Cells]) -> None:
        self.name = name
        self._read = read

    def rows(self) -> Iterator[tuple[int, str]]:
        return ((line, source) for line, source, _ in self.with_targets())

    def with_targets(self) -> Iterator[tuple[int, str, str | None]]:
        """With the target, where the data has one."""
        for line, (source, *targets) in self._read():
            if source := clean(source):
                yield line, source, next(filter(None, map(clean, targets)), None)


def open_pairs(spec: str, source: str = "source", target: str = "target") -> PairSource:
    """CSV, TSV or JSONL with two columns, `train.en,train.de`, a .po catalogue, `sample:NAME`; also compressed.

    Columns given as numbers, counted from 1, are those of a CSV or TSV (or tab-separated .txt) without a header.
    """
    pairs = PairSource(spec, _find(spec, [source, target]))
    if next(pairs.rows(), None) is None:
        left_out = pairs.dropped
        if suffix(Path(spec)) in CATALOGUES:
            raise UserError(f"{spec}: no translations: all {left_out:,} entries are untranslated, fuzzy or obsolete")
        reason = f"all {left_out:,} rows have an empty side" if left_out else "there are no rows"
        raise UserError(f"{spec}: contains no pairs; {reason}")
    return pairs


def open_sources(spec: str, source: str = "source", target: str | None = None) -> SourceTexts:
    """Sources to predict from: any format of `open_pairs`, with or without targets; otherwise one text per line."""
    texts = SourceTexts(spec, _find(spec, [source], target))
    if next(texts.rows(), None) is None:
        raise UserError(f"{spec}: contains no text")
    return texts


def open_rows(spec: str, source: str) -> Rows | None:
    """All columns of a table of sources; None: it is no table."""
    if spec.startswith("sample:"):
        return None
    path, *others = _paths(spec)
    return None if others or suffix(path) in CATALOGUES else whole_rows(path, [source])


def _find(spec: str, columns: list[str], optional: str | None = None) -> Callable[[], Cells]:
    """A reader of the requested columns, plus an optional one where present; some formats give more."""
    if spec.startswith("sample:"):
        sample = find_sample(spec, "pairs")
        return lambda: ((number, list(pair)) for number, pair in enumerate(sample.read(), 1))
    path, *others = _paths(spec)
    for file in (path, *others):
        check_file(file)
        if file.is_dir():
            raise UserError(f"{file}: is a folder; give one file, or two parallel files: train.en,train.de")
    if others:
        if path.samefile(others[0]):
            raise UserError(f"{path}: source and target are the same file; give two parallel ones: train.en,train.de")
        return lambda: _parallel(path, others[0])
    return _find_in_file(path, columns, optional)


def _find_in_file(path: Path, columns: list[str], optional: str | None) -> Callable[[], Cells]:
    kind = suffix(path)
    if kind in CATALOGUES:
        return lambda: read_catalogue(path)
    if read := find_columns(path, columns, optional, roles=("source", "target")):
        return read
    if len(columns) == 1:
        return lambda: ((number, [line]) for number, line in enumerate(read_lines(path), 1))
    raise UserError(
        f"{path}: plain text; give column numbers, such as 1 and 2, if tabs separate source and target, "
        "or a second file with the targets: train.en,train.de"
    )


def _paths(spec: str) -> list[Path]:
    """One file or two; a comma may also be part of a name, so it depends on which files exist."""
    if "," not in spec or os.path.exists(spec):
        return [Path(spec)]
    names = spec.split(",")
    cuts = [(",".join(names[:n]).strip(), ",".join(names[n:]).strip()) for n in range(1, len(names))]
    found = max(cuts, key=lambda cut: sum(bool(name) and os.path.exists(name) for name in cut))
    if not all(found):
        raise UserError(f"{spec}: only one of two files; give both, like train.en,train.de")
    for name, other in (found, reversed(found)):
        if os.path.exists(other) and not os.path.exists(name):
            raise UserError(f"{name}: no such file; it should be parallel to {other}, line by line")
    return [Path(name) for name in found]


def _parallel(path: Path, other: Path) -> Cells:
    sources, targets = read_lines(path), read_lines(other)
    for number, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            rest = sum(1 for _ in (targets if source is None else sources))
            counts = [number - 1 + (0 if text is None else 1 + rest) for text in (source, target)]
            raise UserError(
                f"{path} has {counts[0]:,} lines and {other} has {counts[1]:,}: parallel files must have equally many"
            )
        yield number, [source, target]
