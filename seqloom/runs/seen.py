"""Whether a run has seen data before: scores on what it was trained on say nothing about new data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from seqloom.core.rows import Json
from seqloom.data.fingerprint import fingerprint
from seqloom.data.options import DataOptions
from seqloom.runs.material import Material

Seen = Literal["train", "valid"]


WARNINGS: dict[Seen, str] = {
    "train": "warning: this run was trained on {data}; its scores there say little about new data",
    "valid": "warning: the checkpoint of this run was selected on {data}; its scores there are slightly too good",
}


def seen_in(record: Json, material: Material, data: str, options: DataOptions) -> Seen | None:
    """`record`: run.json; `options`: how `data` is read. A file of which a part was held out counts as trained on."""
    parts: Json = record.get("data", {})
    for part in ("train", "valid"):
        if part not in parts:
            continue
        known = parts[part].get("file")
        if known is None:  # recorded by an older version
            same = _same_place(data, material, part) or material.open(data, options).hash == parts[part]["hash"]
        else:
            same = known == fingerprint(data)
        if same:
            return part
    return None


def _same_place(data: str, material: Material, part: str) -> bool:
    spec = getattr(material.options, part)
    return bool(spec) and (spec == data or Path(spec).resolve() == Path(data).resolve())
