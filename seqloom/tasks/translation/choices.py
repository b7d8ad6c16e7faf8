"""Settings for text to text, chosen from its training set; docs/defaults.md has the experiments behind the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqloom.core.choice import Choice, Demand, batch_tokens, part_to_score
from seqloom.data.shapes.pairs.reading import PairSource

_MOST = 256  # tokens on a side of a training pair
_STEPS = 12_000  # updates that a small set needs, within these bounds in epochs
_LEAST_EPOCHS, _MOST_EPOCHS = 10, 40
_SCORED = 5_000  # pairs of each split, of more than ten times as many
_MINUTES = 8.0  # a text is written token by token, which takes more learning than a label


def choose(train: PairSource, given: Mapping[str, Any]) -> list[Choice]:
    kinds = _kinds(given)
    longer = max(side.quantile(kind, 0.99) for side, kind in zip(train.surveys, kinds, strict=True))
    longest = min(_MOST, max(16, round(1.2 * longer) + 2))
    found = [Choice("task.longest", longest, f"99 % of the texts have at most about {longer:,} tokens")]
    found += part_to_score(train.count, _SCORED, "pairs")
    means = _means(train, given)
    size = f"{train.count:,} pairs of {', '.join(f'{n:.0f}' for n in means)} tokens on average"
    batch = given.get("task.batch_tokens") or batch_tokens(max(means))
    epochs = min(_MOST_EPOCHS, max(_LEAST_EPOCHS, round(_STEPS * batch / (train.count * (max(means) + 1)))))
    settings = {"task.batch_tokens": batch, "train.epochs": float(epochs), "train.minutes": _MINUTES}
    select = Choice("task.select", "accuracy", "texts still improve when the loss no longer does", trains=True)
    found += [*(Choice(path, value, size, trains=True) for path, value in settings.items()), select]
    if "task.length_penalty" not in given:
        reason = "models differ in how early they end a text"
        found.append(Choice("task.tune_length", True, reason, trains=True))
    return found


def demand(train: PairSource, given: Mapping[str, Any]) -> Demand:
    tokens = round(train.count * _means(train, given)[1])
    return Demand(train.count, tokens, pairs=True)


def _kinds(given: Mapping[str, Any]) -> tuple[str, str]:
    kind = given["tokenizer.kind"]
    return kind, given.get("tokenizer.target_kind") or kind


def _means(train: PairSource, given: Mapping[str, Any]) -> list[float]:
    return [side.mean(kind) for side, kind in zip(train.surveys, _kinds(given), strict=True)]
