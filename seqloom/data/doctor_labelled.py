"""What is wrong with rows that have labels, and what suits them, before any training; in bounded memory."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Lines
from seqloom.data.frames import FrameSource, open_frames
from seqloom.data.labelled import Labelled, LabelledSource, open_labelled
from seqloom.data.portions import split_rows

FEW = 20  # rows of a label
UNEVEN = 10  # times as many rows of one label as of another
MANY = 200  # labels, beyond which a column is rather a text
REMEMBERED = 200_000  # texts whose labels are compared


@dataclass
class Survey:
    """What one reading of the rows has found."""

    count: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # in words, or characters where there are no blanks
    lines: Lines = field(default_factory=Lines)
    labels_of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    torn: int = 0  # rows whose text has another label elsewhere
    torn_at: int = 0

    def add(self, row: Labelled, training: bool = True) -> None:
        text = " ".join(row.texts)
        self.lines.add(text, training)
        if not training:
            return
        self.count += 1
        words = len(text.split())
        self.lengths[words if words > len(text) / 12 else len(text)] += 1
        key = zlib.crc32(text.encode()) | len(text) << 32
        if self.labels_of.setdefault(key, row.labels) != row.labels:
            self.torn += 1
            self.torn_at = self.torn_at or row.line
        if len(self.labels_of) > REMEMBERED:
            self.labels_of.clear()

    def length_at(self, share: float) -> int:
        seen = 0
        for length in sorted(self.lengths):
            seen += self.lengths[length]
            if seen >= share * self.count:
                return length
        return 0


def examine_labelled(
    spec: str,
    column: str = "text",
    label: str = "label",
    second: str | None = None,
    separator: str | None = None,
    valid_data: str | None = None,
) -> list[Finding]:
    """Of rows to classify; `valid_data`: those to validate on, else a tenth is set aside as fit would."""
    try:
        whole = open_labelled(spec, column, label, second, separator)
        if valid_data:
            train, valid = whole, open_labelled(valid_data, column, label, second, separator)
        else:
            train, valid = split_rows(whole, 0.1).values()
        survey = Survey()
        for row in train.rows():
            survey.add(row)
        for row in valid.rows():
            survey.add(row, training=False)
        return [*_labels(train, valid), *_texts(survey, train)]
    except UserError as error:
        return [Finding("error", str(error))]


def examine_frames(
    spec: str, label: str = "label", row: str = "id", separator: str | None = None, valid_data: str | None = None
) -> list[Finding]:
    """Of sequences of measurements."""
    try:
        whole = open_frames(spec, label, row, separator=separator)
        if valid_data:
            train, valid = whole, open_frames(valid_data, label, row, separator=separator)
        else:
            train, valid = split_rows(whole, 0.1).values()
    except UserError as error:
        return [Finding("error", str(error))]
    lengths, every = sorted(map(len, train.frames)), np.concatenate(train.frames)
    found = [*_labels(train, valid)]
    if train.dropped:
        found.append(Finding("warning", f"{train.dropped:,} sequences are empty", "they are left out"))
    sizes = f"{train.features} measurements, {lengths[0]:,} to {lengths[-1]:,} steps, half of them up to "
    found.append(Finding("ok", sizes + f"{lengths[len(lengths) // 2]:,}"))
    if still := np.flatnonzero(every.std(0) < 1e-8).tolist():
        found.append(Finding("note", f"measurements that never change: {still}", "they tell nothing; leave them out"))
    return found


def _labels(train: LabelledSource | FrameSource, valid: LabelledSource | FrameSource) -> Iterator[Finding]:
    counts = train.labels.most_common()
    if len(counts) < 2:
        yield Finding(
            "error", f"only the label {counts[0][0]!r}: there is nothing to tell apart" if counts else "no labels"
        )
        return
    (most, often), (least, rarely) = counts[0], counts[-1]
    yield Finding("ok", f"{train.count:,} rows, {len(counts):,} labels: " + _shown(counts))
    if often >= UNEVEN * rarely:
        advice = "read macro-F1 beside the accuracy; -o task.weights=balanced lets rare labels weigh more"
        yield Finding("warning", f"{often:,} rows of {most!r}, {rarely:,} of {least!r}", advice)
    if rare := [name for name, count in counts if count < FEW]:
        yield Finding(
            "warning", f"{len(rare):,} labels have fewer than {FEW} rows: {_names(rare)}", "gather more, or join them"
        )
    if len(counts) > MANY:
        yield Finding("warning", f"{len(counts):,} different labels", "is it the right column? --label NAME")
    if strange := [name for name in valid.labels if name not in train.labels]:
        advice = "they are counted as wrong; put some of their rows into the training part"
        yield Finding("warning", f"labels that only the validation part has: {_names(strange)}", advice)


def _texts(survey: Survey, train: LabelledSource) -> Iterator[Finding]:
    if train.dropped:
        yield Finding("warning", f"{train.dropped:,} rows have an empty text", "they are left out")
    half, nearly = survey.length_at(0.5), survey.length_at(0.99)
    yield Finding("ok", f"half of the texts have up to {half:,} tokens, all but one in a hundred up to {nearly:,}")
    if nearly > 256:
        advice = (
            f"task.longest says how much of a text is read (256), task.keep which part; {nearly} would hold nearly all"
        )
        yield Finding("note", "long texts", advice)
    if (repeated := survey.lines.repeated()) > 0.01:
        yield Finding("note", f"{repeated:.0%} of the texts have been there before", "leave them out: they count twice")
    if survey.torn:
        torn = f"{survey.torn:,} texts have another label elsewhere, the first on line {survey.torn_at:,}"
        yield Finding("warning", torn, "no model can get both right; decide on one label")
    if (overlap := survey.lines.overlap()) > 0.001:
        advice = "leave them out of training, or scores look better than they are"
        yield Finding("warning", f"{overlap:.1%} of the validation part's texts are in the training part too", advice)


def _shown(counts: list[tuple[str, int]]) -> str:
    some = ", ".join(f"{name} {count:,}" for name, count in counts[:5])
    return some + (", ..." if len(counts) > 5 else "")


def _names(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
