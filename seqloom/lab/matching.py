"""Size matching: adjust an architecture's knobs until it has the target number of parameters.

The coarse knob (the width) gets as close as its step size allows; finer ones (the feed-forward width of a Transformer,
the embedding width of an RNN) make up the rest. Depth and heads keep their configured values.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig

TOLERANCE = 0.02
_CLOSE = 0.002  # close enough to leave the finer knobs alone
_LARGEST = 1 << 20

Count = Callable[[ModelConfig], int]


def match_size(config: ModelConfig, target: int, count: Count, name: str, untie: bool = False) -> ModelConfig:
    """The same architecture with `target` parameters, within 2 %; `untie`: tied weights may be untied for that, because
    embeddings that need not have the width of the output are a finer knob."""
    best = _closest(config, target, count)
    if untie and config.tie and (best is None or _off(best, target, count) > TOLERANCE):
        best = _closest(config.model_copy(update={"tie": False}), target, count) or best
    if best is None:
        least = _first_valid(config, config.knobs[0])
        raise UserError(
            f"{name} has at least {count(least):,} parameters with this vocabulary, more than --params {target:,}; "
            "raise --params, or use a smaller tokenizer.vocabulary"
        )
    if not count(best):
        raise UserError(f"{name} has no parameters of its own to match; leave it out, or count all (--count all)")
    if _off(best, target, count) > TOLERANCE:
        raise UserError(
            f"{name} cannot match {target:,} parameters within {TOLERANCE:.0%}; the closest size is {count(best):,}, "
            "so use another --params"
        )
    return best


def _closest(config: ModelConfig, target: int, count: Count) -> ModelConfig | None:
    """None if even the smallest is too large."""
    best = _turn(config, config.knobs[0], target, count)
    for knob in config.knobs[1:]:
        if best is not None and _off(best, target, count) > _CLOSE:
            finer = _turn(best, knob, target, count)
            best = min((c for c in (best, finer) if c is not None), key=lambda c: _off(c, target, count))
    return best


def _off(config: ModelConfig, target: int, count: Count) -> float:
    return abs(count(config) / target - 1)


def _turn(config: ModelConfig, knob: str, target: int, count: Count) -> ModelConfig | None:
    """With the knob value closest to the target; None if even the smallest is more than 2 % too large."""
    low, high = 1, 1
    while high < _LARGEST and ((tried := _at_most(config, knob, high)) is None or count(tried) < target):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        tried = _at_most(config, knob, middle)
        low, high = (middle, high) if tried is None or count(tried) <= target else (low, middle)
    around = [c for c in (_at_most(config, knob, low), _at_least(config, knob, high)) if c is not None]
    if not any(count(c) <= (1 + TOLERANCE) * target for c in around):
        return None
    return min(around, key=lambda c: _off(c, target, count))


def _at_most(config: ModelConfig, knob: str, value: int) -> ModelConfig | None:
    """With the largest valid value up to this one (a width must be divisible by the heads)."""
    return next((c for v in range(value, max(0, value - 512), -1) if (c := _with(config, knob, v))), None)


def _at_least(config: ModelConfig, knob: str, value: int) -> ModelConfig | None:
    return next((c for v in range(value, value + 512) if (c := _with(config, knob, v))), None)


def _first_valid(config: ModelConfig, knob: str) -> ModelConfig:
    return _at_least(config, knob, 1) or config


def _with(config: ModelConfig, knob: str, value: int) -> ModelConfig | None:
    try:
        return type(config).model_validate(config.model_dump() | {knob: value})
    except ValidationError:
        return None
