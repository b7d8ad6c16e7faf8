"""Labelled texts as token ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from seqloom.data.documents import Documents
from seqloom.data.shapes.labelled.reading import LabelledSource


class LabelledRows:
    """Token ids of each text, and the ids of its labels (-1: not in the training set)."""

    def __init__(self, sides: list[Documents], origin: LabelledSource, labels: list[str]) -> None:
        self.origin, self._sides = origin, sides
        self.lengths = 1 + np.sum([side.lengths for side in sides], axis=0)  # including a start token
        number = {label: n for n, label in enumerate(labels)}
        self.labels = [[number.get(label, -1) for label in row.labels] for row in origin.rows()]
        self.unknown = Counter({label: n for label, n in origin.labels.items() if label not in number})
        self.bytes = sum(side.stream.bytes for side in sides)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def counts(self) -> np.ndarray:
        """How often each id occurs."""
        return sum((side.stream.counts for side in self._sides[1:]), start=self._sides[0].stream.counts)

    def parts(self, row: int) -> list[np.ndarray]:
        """The token ids of one or two texts, each with its end-of-text token."""
        return [side[row] for side in self._sides]

    def texts(self) -> Iterator[tuple[str, ...]]:
        return (row.texts for row in self.origin.rows())
