"""The plan of a comparison: everything that determines its results."""

from __future__ import annotations

from typing import Literal

from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.lab.rules import Budget, Rules, parse_amount


class Pretraining(Strict):
    """How transfer is measured."""

    text: str
    budget: Budget
    examples: tuple[int, ...]  # numbers of labelled rows, ascending

    @classmethod
    def parse(cls, text: str, budget: str, examples: str) -> Pretraining:
        """`examples`: 100,400,1600"""
        if Budget.parse(budget).kind == "minutes":
            raise UserError("--pretrain: give the budget of every run, like --budget seconds=60")
        numbers = {round(parse_amount(each.strip(), "--examples")) for each in examples.split(",")}
        return cls(text=text, budget=Budget.parse(budget), examples=tuple(sorted(numbers)))


class Plan(Rules):
    """What identifies a comparison; where and with how many processes it runs is not part of it."""

    models: tuple[str, ...]
    params: int | None
    count: Literal["all", "backbone"]
    pretraining: Pretraining | None = None
