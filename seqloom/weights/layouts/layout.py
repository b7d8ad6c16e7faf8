"""What a public layout is: from its config.json to the options of one of our models, and from its tensors to ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.weights.tensors import Taker

MOST = 2**31  # of any number in a configuration

Named = Iterator[tuple[str, Tensor]]


class Unfit(Exception):
    """This configuration has something that our own model lacks; the message says what."""


class Layout(NamedTuple):
    task: str  # that the model was trained for
    section: Callable[[Json], Json]  # config.json -> model section; raises Unfit
    tensors: Callable[[Json, Json, Taker], Named]  # model section, config.json, their tensors -> ours, by name
    ignored: re.Pattern[str]  # tensors that are not needed
    headed: bool = True  # has an output layer for its task
    folded: re.Pattern[str] = re.compile("")  # tensors that are added to others


def whole(c: Json, key: str, default: int | None = None) -> int:
    """A positive whole number."""
    value: Any = c.get(key)
    value = default if value is None else value
    if type(value) is not int or not 0 < value < MOST:
        raise UserError(f"config.json: {key}={str(value)[:40]}: must be a positive whole number")
    return value


def number(c: Json, key: str, default: float) -> float:
    value: Any = c.get(key)
    value = default if value is None else value
    if type(value) not in (int, float) or not 0 <= value < 1e12:
        raise UserError(f"config.json: {key}={str(value)[:40]}: must be a number that is not negative")
    return float(value)


def needs(c: Json, **wanted: Any) -> None:
    """Raise Unfit unless these keys are absent or have these values."""
    for key, value in wanted.items():
        if c.get(key, value) != value:
            raise Unfit(f"{key}={str(c[key])[:40]}")


def activation(c: Json, key: str, known: dict[str, str], default: str) -> str:
    name = str(c.get(key, default))
    if name not in known:
        raise Unfit(f"{key}={name[:40]}")
    return known[name]


GELU = {"gelu": "gelu_exact", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "relu": "relu"}  # theirs: ours


def prefix(take: Taker, name: str, *prefixes: str) -> str:
    """The first prefix under which this tensor is there; the model alone is saved without any."""
    return next((p for p in prefixes if take.has(p + name)), "")
