"""Labels of rows: their file in a run folder, and a check that there are enough."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.role_names import flag

MANY, EACH = 1000, 2  # a set of more labels than this needs at least this many rows per label


def label_file(labels: Sequence[str], multi: bool, **facts: bool) -> bytes:
    """`facts`: what else is to be known of the texts."""
    return json.dumps({"labels": list(labels), "multi": multi, **facts}, ensure_ascii=False).encode()


def read_labels(folder: Path) -> tuple[list[str], bool]:
    labels, multi, _ = _read(folder)
    return labels, multi


def read_facts(folder: Path) -> dict[str, bool]:
    """What the file says besides the labels."""
    return _read(folder)[2]


def _read(folder: Path) -> tuple[list[str], bool, dict[str, bool]]:
    path = Path(folder) / "labels.json"
    try:
        content = dict(json.loads(path.read_bytes()))
        labels, multi = [str(label) for label in content.pop("labels")], bool(content.pop("multi"))
        return labels, multi, {name: bool(value) for name, value in content.items()}
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: damaged; not a label file written by seqloom") from None


class Labelled(Protocol):
    """Rows of which each has the numbers of its labels; -1: not in the training set."""

    labels: list[list[int]]

    @property
    def origin(self) -> Any: ...


def check_labels(rows: Mapping[str, Labelled], labels: list[str]) -> None:
    """Refuse what cannot be learned or scored. `labels`: of the training set."""
    train, column = rows["train"], flag("label")
    if len(labels) < 2:
        only = f"only the label {quoted(labels[0])}" if labels else "no label"
        raise UserError(f"{train.origin.name}: {only}; there is nothing to classify")
    for part in rows.values():
        if fault := unlearnable(train.origin.labels, len(train.labels), train.origin.unit, part.origin.labels):
            raise UserError(f"{part.origin.name}: {fault}; is it the right column? {column}")


def unlearnable(train: Collection[str], count: int, unit: str, other: Collection[str]) -> str:
    """Why nothing can be learned from so many `train` labels that the `other` labels could be scored with; or empty."""
    sizes = f"{len(train):,} different labels in {count:,} {unit}"
    if len(train) > MANY and count < EACH * len(train):
        return sizes
    if other and not any(label in train for label in other):
        return f"none of its labels are among those of the training set, which has {sizes}"
    return ""
