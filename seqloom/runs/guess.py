"""Which tasks a file is for, the likeliest first, from its kind and its first rows. Nothing here loads torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from seqloom.core.errors import UserError, unknown
from seqloom.data.files import check_file, read_lines, read_text, suffix
from seqloom.data.header import is_date, is_number
from seqloom.data.peek import peek
from seqloom.data.role_names import SOURCE_TARGET, language_of, names_a_label, plain
from seqloom.data.roles import Column, Table
from seqloom.data.rows import READERS
from seqloom.data.samples import SAMPLES
from seqloom.data.samples.sample import NAMES
from seqloom.data.shapes.pairs.reading import CATALOGUES
from seqloom.data.shapes.series.roles import WHEN
from seqloom.data.shapes.tagged.conll import looks_like_columns, read_cells

Guess = tuple[str, str]  # task, reason

SAMPLED = {
    "text": "language_model",
    "pairs": "translation",
    "labelled": "classification",
    "frames": "classification",
    "tagged": "tagging",
    "questions": "question_answering",
    "series": "forecasting",
}
FEW = 10  # rows per value from which a column is a label rather than a text that is often repeated
MANY = 100  # rows from which that is meaningful


def guess_task(spec: str) -> list[Guess]:
    """(task, reason), the likeliest first. Raises for a file that is not there or cannot be read."""
    if spec.startswith("sample:"):
        name = spec.removeprefix("sample:")
        if name not in SAMPLES:
            raise unknown("sample", name, SAMPLES)
        return [(SAMPLED[SAMPLES[name].kind], f"this sample has {NAMES[SAMPLES[name].kind]}")]
    if "," in spec and not os.path.exists(spec):
        return [("translation", "two parallel files")]
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        return [("language_model", "a folder of texts"), ("masked_lm", "a folder of texts")]
    kind = suffix(path)
    if kind in CATALOGUES:
        return [("translation", "a catalogue of translations")]
    if kind == ".npz":
        return [("classification", "arrays of measurements")]
    if kind == ".parquet":
        return [("forecasting", "a table of numbers")]
    if kind == ".json":
        return _json(path)
    if kind not in READERS and _tagged(path):
        return [("tagging", "a word and its tags on each line")]
    found = peek(spec)
    if found is not None:
        return _table(Table(found, {}))
    return _plain(path)


def _json(path: Path) -> list[Guess]:
    beginning = "".join(islice(read_text(path), 1))
    known = all(f'"{key}"' in beginning for key in ("data", "paragraphs", "context"))
    return [("question_answering", "passages with questions, in the SQuAD format")] if known else []


def _tagged(path: Path) -> bool:
    try:
        widths = {len(cells) for _, cells in islice(read_cells(path), 200) if cells}
        return widths != {1} and looks_like_columns(path)
    except UserError:
        return False  # lines of different lengths


def _plain(path: Path) -> list[Guess]:
    lines = [line.strip().split(",") for line in islice(read_lines(path), 50) if line.strip()]
    if lines and len(lines[0]) > 1 and all(map(is_number, lines[0])) and len({len(cells) for cells in lines}) == 1:
        return [("forecasting", "columns of numbers")]
    return [("language_model", "plain text"), ("masked_lm", "plain text")] if lines else []


def _table(table: Table) -> list[Guess]:
    names = {plain(name) for name in table.names} if table.header else set()
    if asked := _asked_or_tagged(table, names):
        return [asked]
    columns = [column for column in table.columns if column.values]
    numbers = [column for column in columns if column.number]
    texts = [column for column in columns if column.running]
    if numbers and not texts:
        if any(_is_time(column) for column in columns if column not in numbers[1:]):
            return [("forecasting", "a time column and columns of numbers")]
        if 2 * len(numbers) > len(columns) and not any(c.wordy and c.varied for c in columns):
            return [("forecasting", "columns of numbers")]
    short = [column for column in columns if column.wordy and not _is_label(column)]
    return _of_texts(table, names, texts if texts and (table.header or len(short) < 2) else short)


def _asked_or_tagged(table: Table, names: set[str]) -> Guess | None:
    if names & {"question", "query"} and names & {"context", "passage"} and names & {"answers", "answer"}:
        return "question_answering", "passages, questions and answers"
    lists = [column for column in table.columns if any(isinstance(cell, list) for cell in column.cells)]
    spanned = any(
        isinstance(cell, list) and cell and isinstance(cell[0], dict | list) for c in lists for cell in c.cells
    )
    if len(lists) > 1 and names & {"words", "tokens"}:
        return "tagging", "lists of words and of tags"
    if spanned and names & {"spans", "entities", "label", "labels"}:
        return "tagging", "texts with spans"
    return None


def _of_texts(table: Table, names: set[str], texts: Sequence[Column]) -> list[Guess]:
    labels = [column for column in table.columns if column not in texts and _is_label(column)]
    named = [column.name for column in labels if table.header and names_a_label(column.name)]
    paired = any(names & sources and names & targets for sources, targets in SOURCE_TARGET)
    languages = sum(language_of(name) is not None for name in table.names) > 1 if table.header else False
    found: list[Guess] = []
    if texts and labels:
        found.append(("classification", f"texts and a label column, {(named or [labels[0].name])[0]}"))
    if len(texts) > 1 or (paired and texts):
        reason = "columns named as source and target" if paired or languages else "two columns of texts"
        found.insert(0 if (paired or languages) and not named else len(found), ("translation", reason))
    if texts:
        found += [("language_model", "a column of texts"), ("masked_lm", "a column of texts")]
    return found


def _is_label(column: Column) -> bool:
    """Few values, of which each is frequent: a short sentence that is repeated now and then is none."""
    return column.label and (len(column.values) < MANY or FEW * column.distinct <= len(column.values) or column.number)


def _is_time(column: Column) -> bool:
    named = column.named and plain(column.name) in WHEN
    return named or sum(map(is_date, column.values)) >= 0.95 * len(column.values)
