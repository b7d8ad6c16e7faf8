"""Labelled sequences of measurements, standardised."""

from __future__ import annotations

from collections import Counter

import numpy as np

from seqloom.data.shapes.frames.reading import FrameSource
from seqloom.data.shapes.frames.scale import LabelledScale


class FrameRows:
    """Standardised measurements of each row, and the ids of its labels (-1: not in the training set)."""

    def __init__(self, source: FrameSource, scale: LabelledScale) -> None:
        self.origin, self._scale = source, scale
        self.lengths = np.array([len(frames) for frames in source.frames])
        number = {label: n for n, label in enumerate(scale.labels)}
        self.labels = [[number.get(label, -1) for label in labels] for labels in source.row_labels]
        self.unknown = Counter({label: n for label, n in source.labels.items() if label not in number})
        self.bytes = source.bytes

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    def parts(self, row: int) -> list[np.ndarray]:
        return [self._scale.apply(self.origin.frames[row])]
