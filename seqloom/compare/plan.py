"""The plan of a comparison: everything that determines its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from seqloom.core.config import Strict, as_overrides, merge, parse_overrides
from seqloom.core.errors import UserError
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.columns import Columns, column_options
from seqloom.lab.rules import Budget, Rules, parse_count
from seqloom.runs.guess import Guess, guess_task
from seqloom.runs.registry import find_config


class Pretraining(Strict):
    """How transfer is measured."""

    text: str
    budget: Budget
    examples: tuple[int, ...]  # numbers of labelled rows, ascending

    @classmethod
    def parse(cls, text: str, budget: str, examples: str) -> Pretraining:
        """`examples`: 100,400,1600"""
        spent = Budget.parse(budget, "--pretrain-budget")
        if spent.kind == "minutes":
            raise UserError("--pretrain: give the budget of every run, like --budget seconds=60")
        numbers = {parse_count(each.strip(), "--examples", cls.largest) for each in examples.split(",")}
        return cls(text=text, budget=spent, examples=tuple(sorted(numbers)))


def per_label(text: str) -> tuple[int, ...]:
    """`8,32,128`"""
    return tuple(sorted({parse_count(each.strip(), "--per-label", Rules.largest) for each in text.split(",")}))


class Plan(Rules):
    """What identifies a comparison; where and with how many processes it runs is not part of it."""

    models: tuple[str, ...]
    params: int | None = Field(ge=1, le=10**12)
    count: Literal["all", "backbone"]
    pretraining: Pretraining | None = None
    per_label: tuple[int, ...] = ()  # numbers of labelled rows per label to train with as well, ascending


def column_overrides(task: str, columns: Columns, overrides: Sequence[str]) -> list[str]:
    """The columns as settings, beside the other `overrides`: they are part of what identifies a comparison."""
    own = merge(parse_overrides(overrides)).get("task", {})
    options = column_options(find_shape(find_config("tasks", task).shape(own)), columns)
    return as_overrides({"data": options})


def guesses(data: str, columns: Columns) -> list[Guess]:
    """Tasks that suit the data, the likeliest first; if possible, those with the roles of these columns."""
    found = guess_task(data)
    shapes = {task: find_shape(find_config("tasks", task).shapes[0]) for task, _ in found}
    return [guess for guess in found if columns.keys() <= shapes[guess[0]].columns.keys()] or found
