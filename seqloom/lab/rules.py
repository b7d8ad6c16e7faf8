"""The settings common to every run of a comparison: task, data, budget, trials and seeds."""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

from pydantic import Field

from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.rows import Json

Kind = Literal["tokens", "bytes", "seconds", "flops", "minutes"]
Ladder = Literal["budget", "data", "size"]
_UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}


class Budget(Strict):
    """The training budget of every run; minutes are those of the whole comparison, divided among its runs."""

    kind: Kind
    amount: float = Field(gt=0)

    @classmethod
    def parse(cls, text: str) -> Budget:
        kind, _, amount = text.partition("=")
        if kind not in get_args(Kind) or not amount:
            raise UserError(
                f"--budget {text}: write tokens=2M, bytes=8M, seconds=60 or flops=1e13 per run, or minutes=20 in all"
            )
        return cls(kind=kind, amount=parse_amount(amount, "--budget"))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.kind}={self.amount:.12g}"


def parse_amount(text: str, option: str) -> float:
    """`2M` -> 2000000.0"""
    match = re.fullmatch(r"([0-9.]+(?:e[+-]?[0-9]+)?)([kKMGBT]?)", text.replace("_", "").replace(",", ""))
    try:
        amount = float(match[1]) * _UNITS[match[2]] if match else 0.0
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        raise UserError(f"{option} {text}: not a positive number; write for example 800k, 2M or 1e9")
    return amount


class Margin(Strict):
    """A difference that does not matter: `1%` of the best score, or `0.01` in units of the score."""

    amount: float = Field(ge=0)
    relative: bool = True

    @classmethod
    def parse(cls, text: str) -> Margin:
        number = text.strip().removesuffix("%")
        try:
            amount = float(number)
        except ValueError:
            amount = -1.0
        if not 0 <= amount < math.inf:
            raise UserError(f"--margin {text}: write 1% (of the best score), or 0.01 in units of the score")
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
    seed: int = Field(ge=0)
    threads: int = Field(ge=1)
    margin: Margin = Margin(amount=0.01)
    ladder: Ladder | None = None  # also train with less of this
