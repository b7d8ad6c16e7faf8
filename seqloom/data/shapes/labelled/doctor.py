"""Findings on labelled texts, in bounded memory."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Lines
from seqloom.data.label_findings import examine_labels
from seqloom.data.portions import split_rows
from seqloom.data.shapes.labelled.reading import Labelled, LabelledSource, open_labelled

REMEMBERED = 200_000  # texts whose labels are compared


@dataclass
class Survey:
    """What one pass over the rows finds."""

    count: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # in words, or in characters if there are no spaces
    lines: Lines = field(default_factory=Lines)
    labels_of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    conflicts: int = 0  # rows whose text has a different label elsewhere
    first_conflict: int = 0

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
            self.conflicts += 1
            self.first_conflict = self.first_conflict or row.line
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
    """All findings; `valid_data`: the validation set, by default a tenth held out as `fit` would."""
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
        return [*examine_labels(train, valid), *_texts(survey, train)]
    except UserError as error:
        return [Finding("error", str(error))]


def _texts(survey: Survey, train: LabelledSource) -> Iterator[Finding]:
    if train.dropped:
        yield Finding("warning", f"{train.dropped:,} rows have an empty text", "they are left out")
    median, long = survey.length_at(0.5), survey.length_at(0.99)
    yield Finding("ok", f"text length in tokens: median {median:,}, 99% up to {long:,}")
    if long > 256:
        advice = f"task.longest sets how many tokens are read (256), task.keep which; {long} would cover nearly all"
        yield Finding("note", "some texts are long", advice)
    if (repeated := survey.lines.repeated()) > 0.01:
        advice = "remove them, or they weigh more than others"
        yield Finding("note", f"{repeated:.0%} of the texts are duplicates", advice)
    if survey.conflicts:
        first = f"the first is on line {survey.first_conflict:,}"
        message = f"{survey.conflicts:,} texts also occur with a different label; {first}"
        yield Finding("warning", message, "no model can get both right; decide on one label")
    if (overlap := survey.lines.overlap()) > 0.001:
        advice = "remove them from training, or scores will look too good"
        yield Finding("warning", f"{overlap:.1%} of the validation set's texts are also in the training set", advice)
