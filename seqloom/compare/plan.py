"""The plan of a comparison: what is asked, and what follows from it for each entry."""

from __future__ import annotations

from typing import Literal

from seqloom.core.config import Strict
from seqloom.lab.rules import Budget, Rules, parse_amount


class Pretraining(Strict):
    """What transfer is measured by."""

    text: str
    budget: Budget
    examples: tuple[int, ...]  # numbers of labelled rows, rising

    @classmethod
    def parse(cls, text: str, budget: str, examples: str) -> Pretraining:
        """`examples`: 100,400,1600"""
        numbers = {round(parse_amount(each.strip(), "--examples")) for each in examples.split(",")}
        return cls(text=text, budget=Budget.parse(budget), examples=tuple(sorted(numbers)))


class Plan(Rules):
    """All that makes two comparisons the same one; how fast and where it is worked off is not part of it."""

    models: tuple[str, ...]
    params: int | None
    count: Literal["all", "backbone"]
    pretraining: Pretraining | None = None
