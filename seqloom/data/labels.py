"""Labels of rows: their file in a run folder, and a check that there are enough."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from seqloom.core.errors import UserError


def label_file(labels: Sequence[str], multi: bool) -> bytes:
    return json.dumps({"labels": list(labels), "multi": multi}, ensure_ascii=False).encode()


def read_labels(folder: Path) -> tuple[list[str], bool]:
    path = Path(folder) / "labels.json"
    try:
        content = json.loads(path.read_bytes())
        return [str(label) for label in content["labels"]], bool(content["multi"])
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: damaged; not a label file written by seqloom") from None


def check_labels(labels: list[str]) -> None:
    if len(labels) < 2:
        only = f"only the label {labels[0]!r}" if labels else "no label"
        raise UserError(f"the training set has {only}; there is nothing to classify")
