"""What may be wrong with the labels of rows: too few, too many, too rare, in one part only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from seqloom.data.findings import Finding

FEW = 20  # rows of a label
UNEVEN = 10  # times as many rows of one label as of another
MANY = 200  # labels, beyond which a column is rather a text


class HasLabels(Protocol):
    """Rows with labels: how many rows there are, and how often each label occurs."""

    @property
    def labels(self) -> Counter[str]: ...
    @property
    def count(self) -> int: ...


def examine_labels(train: HasLabels, valid: HasLabels) -> Iterator[Finding]:
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


def _shown(counts: list[tuple[str, int]]) -> str:
    some = ", ".join(f"{name} {count:,}" for name, count in counts[:5])
    return some + (", ..." if len(counts) > 5 else "")


def _names(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
