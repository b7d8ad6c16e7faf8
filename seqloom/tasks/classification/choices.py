"""Settings for a classifier, chosen from its training set; docs/defaults.md has the experiments behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqloom.core.choice import Choice, Demand
from seqloom.data.shapes.frames.reading import FrameSource
from seqloom.data.shapes.labelled.reading import LabelledSource

_MOST = 256  # tokens read of a row: more take time, and rarely change the answer
_ROWS = 32  # rows of average length in a batch, within these bounds in tokens
_LEAST_BATCH, _MOST_BATCH = 512, 4096


class Lengths(NamedTuple):
    """Of the rows, in tokens or time steps."""

    mean: float
    nearly_all: int  # that 99 % do not exceed
    unit: str


def choose(train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> list[Choice]:
    lengths = lengths_of(train, given)
    longest = min(_MOST, max(8, lengths.nearly_all + 2))  # with a token at each end
    read = f"99 % of the rows have at most {lengths.nearly_all:,} {lengths.unit}"
    found = [Choice("task.longest", longest, read)]
    if longest < lengths.nearly_all:
        found.append(Choice("task.keep", "both", f"{read}; of longer ones, the start and the end are read"))
    longest = given.get("task.longest", longest)
    mean = min(lengths.mean + 2, longest)
    batch = round(min(_MOST_BATCH, max(_LEAST_BATCH, _ROWS * mean)))
    size = f"{train.count:,} rows of {lengths.mean:.0f} {lengths.unit} on average"
    found += [Choice("task.batch_tokens", batch, size), Choice("train.rate", 4e-3, size)]
    found += [Choice(f"train.{name}", value, size) for name, value in (("epochs", 8.0), ("patience", 4))]
    found.append(Choice("task.select", "loss", "less noisy than the accuracy of a few hundred rows"))
    found += [Choice("task.pooling", "max", "better than the mean on most of the sets tried")]
    if isinstance(train, LabelledSource):
        found.append(Choice("task.word_dropout", 0.1, "so that no single word decides"))
    return found


def demand(train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> Demand:
    mean = min(lengths_of(train, given).mean, given["task.longest"])
    return Demand(rows=train.count, tokens=round(train.count * mean), whole=True)


def lengths_of(train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> Lengths:
    if isinstance(train, FrameSource):
        sizes = [len(frames) for frames in train.frames]
        return Lengths(float(np.mean(sizes)), int(np.quantile(sizes, 0.99)), "time steps")
    survey, kind = train.survey, given["tokenizer.kind"]
    return Lengths(survey.mean(kind), survey.quantile(kind, 0.99), "tokens")
