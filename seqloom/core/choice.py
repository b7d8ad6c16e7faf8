"""Settings chosen from the data where the user says nothing, and what an architecture is told to choose its size."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Choice(NamedTuple):
    path: str  # of the setting: task.longest
    value: Any
    reason: str  # a clause for the log: 99 % of the texts have at most 61 tokens
    trains: bool = False  # without effect on a model that is not trained by gradient descent


_RATE, _PARAMETERS, _FASTEST = 1e-4, 22.7e6, 3e-4  # of fine-tuning: this rate for a model of this size, and the most
_ADAPTED = 10.0  # times that rate with adapters, which start from zero (Schulman et al. 2025, LoRA Without Regret)


def batch_tokens(mean: float) -> int:
    """Tokens of a batch of 24 rows of average length, from 512 to 4,096: short trainings need many updates."""
    return round(min(4096.0, max(512.0, 24 * mean)))


def part_to_score(size: int, most: int, unit: str) -> list[Choice]:
    """Of a set so large that a tenth of it takes longer to score than to train on, only so much of each split."""
    if size <= 10 * most:
        return []
    return [Choice("task.scored", most, f"{size:,} {unit}; task.scored=0 scores all of each split, which takes long")]


class Start(NamedTuple):
    """Pretrained weights that a run starts from, as far as settings depend on them."""

    parameters: int
    causal: bool  # it reads from left to right only
    adapted: bool = False  # only adapters and the output layer are trained

    @property
    def rate(self) -> float:
        """Peak learning rate of AdamW: the larger the model, the smaller (docs/pretrained.md has the experiments)."""
        full = min(_FASTEST, _RATE * math.sqrt(_PARAMETERS / self.parameters))
        return float(f"{full * (_ADAPTED if self.adapted else 1.0):.1e}")

    @property
    def reason(self) -> str:
        """For the log."""
        how = "adapters on" if self.adapted else "fine-tuning of"
        return f"{how} {self.parameters:,} pretrained weights"


def fine_tuning(start: Start, epochs: float) -> list[Choice]:
    """Training settings that keep most of what pretrained weights know."""
    settings = {"train.optimizer": "adamw", "train.rate": start.rate, "train.weight_decay": 0.01}
    settings |= {"train.epochs": epochs}
    return [Choice(path, value, start.reason) for path, value in settings.items()]


class Demand(NamedTuple):
    """What a task asks of an architecture on the data at hand."""

    rows: int  # training rows; of running text, its tokens
    tokens: int  # training tokens, all of which are read once per epoch
    length: int = 0  # points of history that a forecast is based on
    whole: bool = False  # complete sequences are encoded, so that a model may read them from both sides
    dense: bool = False  # every position has a target, not only the sequence as a whole
    pairs: bool = False  # a source is read and a target is generated
    width: int = 0  # of the hidden vectors, if the user gives it

    @property
    def size(self) -> str:
        """For the log."""
        return f"{self.rows:,} rows, {self.tokens:,} tokens to learn from"
