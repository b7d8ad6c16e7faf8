"""Sequences of measurements with labels, scaled by what the training part says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.frames.reading import FrameSource, open_frames
from seqloom.data.shapes.frames.rows import FrameRows
from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.labelled.shape import check_labels
from seqloom.data.shapes.shape import Material


class Frames(Material):
    def open(self, spec: str, data: DataConfig) -> FrameSource:
        return open_frames(spec, data.label, data.row, data.column, data.separator)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        found = open_frames(spec, None, data.row, data.column)
        return ({"line": n, "frames": frames} for n, frames in enumerate(found.frames, 1))

    def make_tokenizer(self, config: Any, train: FrameSource, known: Any = None) -> LabelledScale:
        """A feature that never changes stays as it is, but for its mean."""
        every = np.concatenate(train.frames).astype(np.float64)
        deviation = every.std(0)
        steady = np.where(deviation > 1e-8, deviation, 1.0)
        return LabelledScale(every.mean(0), steady, sorted(train.labels), train.multi)

    def load_tokenizer(self, folder: Path) -> LabelledScale:
        return LabelledScale.load(folder)

    def prepare(self, part: FrameSource, tokenizer: LabelledScale, talk: Reporter | None = None, name: str = "") -> Any:
        if part.features != tokenizer.size:
            raise UserError(f"{part.name}: {part.features} features where training had {tokenizer.size}")
        return FrameRows(part, tokenizer)

    def check(self, rows: Mapping[str, FrameRows], tokenizer: LabelledScale) -> None:
        check_labels(tokenizer.labels)

    def describe(self, train: FrameRows, tokenizer: LabelledScale) -> str:
        left_out = f" ({train.origin.dropped:,} empty ones left out)" if train.origin.dropped else ""
        sizes = f"{train.tokens:,} steps of {tokenizer.size} measurements, {len(tokenizer.labels):,} labels"
        return f"{len(train):,} training sequences{left_out}, {sizes}"


MATERIAL = Frames()
