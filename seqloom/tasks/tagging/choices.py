"""Settings for a tagger, chosen from its training set; docs/defaults.md has the experiments behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqloom.core.choice import Choice, Demand
from seqloom.data.shapes.tagged.reading import TaggedSource

_LARGE = 500_000  # words from which batches are larger


def choose(train: TaggedSource, given: Mapping[str, Any]) -> list[Choice]:
    found = []
    if train.entities:
        found.append(Choice("task.crf", True, "the tags mark entities, which are right or wrong as a whole", True))
    if given["tokenizer.kind"] == "words":
        spelling = "the spelling tells something about unknown words"
        found += [
            Choice("task.characters", "convolution", spelling, True),
            Choice("task.features", 100, spelling, True),
        ]
    size = f"{train.count:,} sentences, {train.words:,} words"
    batch, epochs = (1024, 10.0) if train.words > _LARGE else (512, 20.0)
    settings = {"task.batch_tokens": batch, "task.dropout": 0.2, "task.word_dropout": 0.1, "train.epochs": epochs}
    return found + [Choice(path, value, size, trains=True) for path, value in settings.items()]


def demand(train: TaggedSource) -> Demand:
    return Demand(rows=train.count, tokens=train.words, whole=True, dense=True)
