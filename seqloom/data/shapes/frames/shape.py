"""Labelled sequences of measurements, standardised by the mean and standard deviation of the training set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.findings import Finding
from seqloom.data.labels import check_labels
from seqloom.data.options import DataOptions
from seqloom.data.shapes.frames.doctor import examine_frames
from seqloom.data.shapes.frames.reading import FrameSource, holds_frames, open_frames
from seqloom.data.shapes.frames.roles import frame_roles, lacks_frames
from seqloom.data.shapes.frames.rows import FrameRows
from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.shape import RowShape
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import NoTokenizer


class Options(DataOptions):
    roles = {"row": "row", "label": "label"}

    column: str = Field("text", min_length=1, description="array of measurements in NPZ files; if absent: frames")
    label: str = Field("label", min_length=1, description="label column")
    separator: str | None = Field(
        None, min_length=1, description="separator between the labels of a row; default: one label each"
    )
    row: str = Field("id", min_length=1, description="tables with one time step per line: column naming the sequence")


class Frames(RowShape[Options, NoTokenizer, FrameSource, FrameRows, LabelledScale]):
    options = Options
    parts = ("column", "label")
    columns = {"frames": "column", "label": "label", "row": "row"}
    inputs = frozenset({"column", "row"})

    def open(self, spec: str, options: Options) -> FrameSource:
        return open_frames(spec, options.label, options.row, options.column, options.separator)

    def holds(self, spec: str) -> bool:
        return holds_frames(spec)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return frame_roles(spec, given, predict)

    def lacks(self, spec: str, names: Mapping[str, object]) -> set[str]:
        return lacks_frames(spec, names)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        found = open_frames(spec, options.label, options.row, options.column, labelled=False)
        return ({"line": n, "frames": frames} for n, frames in enumerate(found.frames, 1))

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        part = self.open(spec, options)
        for n, (frames, labels) in enumerate(zip(part.frames, part.row_labels, strict=True), 1):
            yield {"line": n, "frames": frames, "truth": set(labels) if part.multi else labels[0]}

    def examine(self, options: Options) -> list[Finding]:
        return examine_frames(options.train, options.label, options.row, options.separator, options.valid)

    def make_vocabulary(
        self, options: NoTokenizer, train: FrameSource, known: Tokenizer | None = None
    ) -> LabelledScale:
        """A constant feature is only centred."""
        every = np.concatenate(train.frames).astype(np.float64)
        deviation = every.std(0)
        steady = np.where(deviation > 1e-8, deviation, 1.0)
        return LabelledScale(every.mean(0), steady, sorted(train.labels), train.multi)

    def load_vocabulary(self, folder: Path) -> LabelledScale:
        return LabelledScale.load(folder)

    def prepare(
        self, part: FrameSource, vocabulary: LabelledScale, talk: Reporter | None = None, name: str = ""
    ) -> FrameRows:
        if part.features != vocabulary.size:
            raise UserError(f"{part.name}: {part.features} features, but training had {vocabulary.size}")
        return FrameRows(part, vocabulary)

    def check(self, rows: Mapping[str, FrameRows], vocabulary: LabelledScale) -> None:
        check_labels(rows, vocabulary.labels)

    def describe(self, train: FrameRows, vocabulary: LabelledScale) -> str:
        left_out = f" ({train.origin.dropped:,} empty ones left out)" if train.origin.dropped else ""
        sizes = f"{train.tokens:,} time steps of {vocabulary.size} features, {len(vocabulary.labels):,} labels"
        return f"{len(train):,} training sequences{left_out}, {sizes}"


SHAPE = Frames()
