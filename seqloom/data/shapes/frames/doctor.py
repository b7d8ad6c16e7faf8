"""Findings on labelled sequences of measurements."""

from __future__ import annotations

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding
from seqloom.data.label_findings import examine_labels
from seqloom.data.portions import split_rows
from seqloom.data.shapes.frames.reading import open_frames


def examine_frames(
    spec: str, label: str = "label", row: str = "id", separator: str | None = None, valid_data: str | None = None
) -> list[Finding]:
    """All findings; `valid_data`: the validation set, by default a tenth held out as `fit` would."""
    try:
        whole = open_frames(spec, label, row, separator=separator)
        if valid_data:
            train, valid = whole, open_frames(valid_data, label, row, separator=separator)
        else:
            train, valid = split_rows(whole, 0.1).values()
    except UserError as error:
        return [Finding("error", str(error))]
    lengths, every = sorted(map(len, train.frames)), np.concatenate(train.frames)
    found = [*examine_labels(train, valid)]
    if train.dropped:
        found.append(Finding("warning", f"{train.dropped:,} sequences are empty", "they are left out"))
    sizes = f"{train.features} features, {lengths[0]:,} to {lengths[-1]:,} time steps"
    found.append(Finding("ok", f"{sizes}, median {lengths[len(lengths) // 2]:,}"))
    if still := np.flatnonzero(every.std(0) < 1e-8).tolist():
        found.append(Finding("note", f"features that never change: {still}", "leave them out: they add nothing"))
    return found
