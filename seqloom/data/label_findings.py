"""Findings on labels: too few, too many, too rare, or absent from the training set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from seqloom.core.quoting import quoted
from seqloom.data.findings import Finding
from seqloom.data.labels import unlearnable
from seqloom.data.role_names import flag

FEW = 20  # rows per label
UNEVEN = 10  # ratio of the most to the least frequent label
MANY = 200  # labels; a column with more probably holds text


class HasLabels(Protocol):
    """Rows with labels: the number of rows, and how often each label occurs."""

    @property
    def labels(self) -> Counter[str]: ...
    @property
    def count(self) -> int: ...


def examine_labels(train: HasLabels, valid: HasLabels) -> Iterator[Finding]:
    counts = train.labels.most_common()
    if len(counts) < 2:
        yield Finding(
            "error",
            f"the only label is {quoted(counts[0][0])}: there is nothing to classify" if counts else "no labels",
        )
        return
    if fault := unlearnable(train.labels, train.count, "rows", valid.labels):
        yield Finding("error", fault, f"is it the right column? {flag('label')}")
        return
    (most, often), (least, rarely) = counts[0], counts[-1]
    yield Finding("ok", f"{train.count:,} rows, {len(counts):,} labels: " + _shown(counts))
    if often >= UNEVEN * rarely:
        advice = "look at macro-F1 besides accuracy; -o task.weights=balanced gives rare labels more weight"
        yield Finding(
            "warning", f"imbalanced labels: {often:,} rows of {quoted(most)}, {rarely:,} of {quoted(least)}", advice
        )
    if rare := [name for name, count in counts if count < FEW]:
        message = f"{len(rare):,} labels have fewer than {FEW} rows: {_names(rare)}"
        yield Finding("warning", message, "collect more rows, or merge labels")
    if len(counts) > MANY:
        yield Finding("warning", f"{len(counts):,} different labels", f"is it the right column? {flag('label')}")
    if strange := [name for name in valid.labels if name not in train.labels]:
        advice = "they always count as errors; add some of their rows to the training set"
        yield Finding("warning", f"labels found only in the validation set: {_names(strange)}", advice)


def _shown(counts: list[tuple[str, int]]) -> str:
    some = ", ".join(f"{name} {count:,}" for name, count in counts[:5])
    return some + (", ..." if len(counts) > 5 else "")


def _names(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
