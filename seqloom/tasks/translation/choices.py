"""Settings for text to text, chosen from its training set; docs/defaults.md has the experiments behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqloom.core.choice import Choice, Demand
from seqloom.data.shapes.pairs.reading import PairSource

_MOST = 256  # tokens on a side of a training pair


def choose(train: PairSource, given: Mapping[str, Any]) -> list[Choice]:
    kinds = _kinds(given)
    longer = max(side.quantile(kind, 0.99) for side, kind in zip(train.surveys, kinds, strict=True))
    longest = min(_MOST, max(16, round(1.2 * longer) + 2))
    found = [Choice("task.longest", longest, f"99 % of the texts have at most about {longer:,} tokens")]
    size = f"{train.count:,} pairs of {', '.join(f'{n:.0f}' for n in _means(train, given))} tokens on average"
    return [*found, Choice("task.batch_tokens", 512, size, trains=True), Choice("train.epochs", 15.0, size)]


def demand(train: PairSource, given: Mapping[str, Any]) -> Demand:
    tokens = round(train.count * _means(train, given)[1])
    return Demand(train.count, tokens, pairs=True)


def _kinds(given: Mapping[str, Any]) -> tuple[str, str]:
    kind = given["tokenizer.kind"]
    return kind, given.get("tokenizer.target_kind") or kind


def _means(train: PairSource, given: Mapping[str, Any]) -> list[float]:
    return [side.mean(kind) for side, kind in zip(train.surveys, _kinds(given), strict=True)]
