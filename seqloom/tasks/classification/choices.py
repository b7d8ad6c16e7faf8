"""Settings for a classifier, chosen from its training set; docs/defaults.md has the experiments behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqloom.core.choice import Choice, Demand, Start, batch_tokens, fine_tuning, part_to_score
from seqloom.data.shapes.frames.reading import FrameSource
from seqloom.data.shapes.labelled.reading import LabelledSource

_MOST = 256  # tokens read of a row: more take time, and rarely change the answer
_STEPS = 1200  # updates that a small set needs, within these bounds in epochs
_LEAST_EPOCHS, _MOST_EPOCHS = 5, 30
_TUNED_STEPS, _LEAST_TUNED, _MOST_TUNED = 400, 3, 15  # of pretrained weights: updates, and bounds in epochs
_CONTRASTED = 2560  # rows that contrastive tuning encodes at most: 80 batches of 32, but every row once
_FITTED = 0.01  # contrastive loss at which it ends: cosines are within 0.1 of their targets, in the root mean square
_PROMPTED = 1000  # rows of each split that are scored by prompting
_SCORED = 50_000  # rows of each split, of more than ten times as many
_CHARACTER_EPOCHS = 10  # at least, where words must be learned from their characters


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
    if given.get("train.method") == "prompt":
        template = Choice("task.prompt", "default", "a template of your own: the path of a TOML file")
        return [*found, template, Choice("task.scored", _PROMPTED, "reading a row with a prompt takes long")]
    found += part_to_score(train.count, _SCORED, "rows")
    longest = given.get("task.longest", longest)
    mean = min(lengths.mean + 2, longest)
    batch = given.get("task.batch_tokens") or batch_tokens(mean)
    least = _CHARACTER_EPOCHS if given.get("tokenizer.kind") == "characters" else _LEAST_EPOCHS
    epochs = min(_MOST_EPOCHS, max(least, round(_STEPS * batch / (train.count * mean))))
    size = f"{train.count:,} rows of {lengths.mean:.0f} {lengths.unit} on average"
    few = "rows are few, so that single words must not decide"
    settings = {
        "task.batch_tokens": (batch, size),
        "train.rate": (4e-3, size),
        "train.epochs": (float(epochs), size),
        "train.patience": (4, size),
        "task.pooling": ("max", "ahead of the mean in most experiments"),
        "task.smoothing": (0.1, few),
        "task.word_dropout": (0.1, few),
        "task.select": ("loss", "less noisy than the accuracy of some hundred rows"),
    }
    if isinstance(train, FrameSource):
        del settings["task.word_dropout"]
    probed = {"task.pooling"} if given.get("train.method") == "probe" else set()  # what matters to a probe as well
    return found + [Choice(path, *chosen, trains=path not in probed) for path, chosen in settings.items()]


def tune(start: Start, train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> list[Choice]:
    """Fewer epochs than from nothing, and nothing hidden from a model that knows its words."""
    if given.get("train.method") == "prompt":
        return []
    mean = min(lengths_of(train, given).mean + 2, given["task.longest"])
    steps = train.count * mean / given["task.batch_tokens"]  # per epoch
    epochs = min(_MOST_TUNED, max(_LEAST_TUNED, round(_TUNED_STEPS / steps)))
    settings = {"task.pooling": "mean", "task.smoothing": 0.0, "task.word_dropout": 0.0, "task.head_dropout": 0.1}
    kept = [Choice(path, value, start.reason, trains=True) for path, value in settings.items()]
    if given.get("train.method") == "probe":
        kept[0] = Choice("task.pooling", "mean", f"an encoder of {start.parameters:,} pretrained weights")
    if given.get("train.method") == "setfit":
        epochs = max(1, round(_CONTRASTED / max(1, train.count)))
        few = Choice("train.patience", 0, "a few validation rows do not tell when to stop", trains=True)
        low = Choice("train.enough", _FITTED, "all pairs fit then, and more steps only memorise the rows", trains=True)
        return [*fine_tuning(start, float(epochs)), few, low, *kept]
    return [*fine_tuning(start, float(epochs)), *kept]


def demand(train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> Demand:
    mean = min(lengths_of(train, given).mean, given["task.longest"])
    return Demand(rows=train.count, tokens=round(train.count * mean), whole=True)


def lengths_of(train: LabelledSource | FrameSource, given: Mapping[str, Any]) -> Lengths:
    if isinstance(train, FrameSource):
        sizes = [len(frames) for frames in train.frames]
        return Lengths(float(np.mean(sizes)), int(np.quantile(sizes, 0.99)), "time steps")
    survey, kind = train.survey, given["tokenizer.kind"]
    return Lengths(survey.mean(kind), survey.quantile(kind, 0.99), "tokens")
