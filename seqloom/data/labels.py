"""Labels of rows: their file in a run folder, and a check that there are enough."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from seqloom.core.errors import UserError


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


def check_labels(labels: list[str]) -> None:
    if len(labels) < 2:
        only = f"only the label {labels[0]!r}" if labels else "no label"
        raise UserError(f"the training set has {only}; there is nothing to classify")
