"""The settings common to every run of a comparison: task, data, budget, trials and seeds."""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

from pydantic import Field

from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.quoting import short
from seqloom.core.rows import Json

Kind = Literal["tokens", "bytes", "seconds", "flops", "minutes"]
Ladder = Literal["budget", "data", "size"]
MOST_SEEDS = 1000  # and trials
_MOST = {"tokens": 1e15, "bytes": 1e15, "seconds": 1e9, "flops": 1e30, "minutes": 1e7}  # of a budget
_MOST_OF_ALL = 1e15  # of parameters
_AMOUNT = re.compile(r"((?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,4})?|\.[0-9]+)([kKMGBT]?)")
_UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}


class Budget(Strict):
    """The training budget of every run; minutes are those of the whole comparison, divided among its runs."""

    kind: Kind
    amount: float = Field(gt=0, le=1e30)

    @classmethod
    def parse(cls, text: str, option: str = "--budget") -> Budget:
        kind, _, amount = text.partition("=")
        if kind not in get_args(Kind) or not amount:
            each = "write tokens=2M, bytes=8M, seconds=60 or flops=1e13 per run, or minutes=20 in all"
            raise UserError(f"{option} {short(text)}: {each}")
        number = parse_amount(amount, f"{option} {kind}=", most=math.inf)
        if number > _MOST[kind]:
            most = f"more than {_MOST[kind]:.0e} {kind}"
            raise UserError(f"{option} {short(text)}: {most}; write a budget that can be spent")
        return cls(kind=kind, amount=number)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.kind}={self.amount:.12g}"


def parse_amount(text: str, option: str, most: float = _MOST_OF_ALL) -> float:
    """`2M` -> 2000000.0"""
    given = f"{option}{'' if option.endswith('=') else ' '}{short(text)}"
    match = _AMOUNT.fullmatch(text)
    amount = float(re.sub("[,_]", "", match[1])) * _UNITS[match[2]] if match else 0.0
    if not 0 < amount < math.inf:
        raise UserError(f"{given}: not a positive number; write for example 800k, 2M or 1e9")
    if amount > most:
        raise UserError(f"{given}: too large; at most {most:.0e}")
    return amount


def parse_count(text: str, option: str, most: float = _MOST_OF_ALL) -> int:
    """The same of things that are whole."""
    amount = parse_amount(text, option, most)
    if amount != int(amount):
        raise UserError(f"{option} {short(text)}: give whole numbers, for example 8, 800k or 2M")
    return int(amount)


class Margin(Strict):
    """A difference that does not matter: `1%` of the best score, or `0.01` in units of the score."""

    amount: float = Field(ge=0)
    relative: bool = True

    @classmethod
    def parse(cls, text: str) -> Margin:
        number = text.strip().removesuffix("%")
        try:
            amount = float(number) if number.isascii() else -1.0
        except ValueError:
            amount = -1.0
        if not 0 <= amount <= cls.largest:
            raise UserError(f"--margin {short(text)}: write 1% (of the best score), or 0.01 in units of the score")
        relative = text.strip().endswith("%")
        return cls(amount=amount / 100 if relative else amount, relative=relative)

    @property
    def text(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"

    def of(self, score: float) -> float:
        """In units of the score, beside this best score."""
        return self.amount * abs(score) if self.relative else self.amount


class Rules(Strict):
    task: str
    data: Json
    overrides: tuple[str, ...]  # settings for all entries
    budget: Budget
    trials: int = Field(ge=0)
    trial_share: float = Field(gt=0, le=1)
    tune_depth: bool = False  # the search also varies the number of layers
    seeds: int = Field(ge=1)
    seed: int = Field(ge=0, lt=2**62)
    threads: int = Field(ge=1)
    margin: Margin = Margin(amount=0.01)
    ladder: Ladder | None = None  # also train with less of this
