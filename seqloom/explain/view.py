"""View: the result of one way to look at a model, as tensors, as a table and as facts in a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from seqloom.core.rows import Json, Row


@dataclass(frozen=True)
class View:
    name: str  # of the view, such as influence
    tensors: dict[str, np.ndarray]  # its numbers, by name
    rows: list[Row]  # the same as a table: one flat row per cell, token or head
    facts: Json = field(default_factory=dict)  # figures and remarks about all of it
