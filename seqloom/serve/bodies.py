"""Strict JSON: what is not UTF-8, too deep, not finite, half a character or named twice is refused at the edge."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS = re.compile(r"[^\[\]{}]+")


def read_json(data: bytes, limits: Limits) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refused("not UTF-8") from None
    if _depth(text, limits.depth) > limits.depth:
        raise _refused(f"values nested more than {limits.depth} deep")

    def number(digits: str) -> int:
        if len(digits) > limits.digits:
            raise _refused(f"a number of more than {limits.digits} digits")
        return int(digits)

    try:
        value = json.loads(
            text, parse_int=number, parse_float=_finite, parse_constant=_constant, object_pairs_hook=_once
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _refused("half a character (a lone surrogate)") from None
    except (ValueError, RecursionError):
        raise _refused("not JSON") from None
    return value


def _depth(text: str, most: int) -> int:
    depth = deepest = 0
    for bracket in _NOT_BRACKETS.sub("", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > most:
            break
    return deepest


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _refused("a number that is too large")
    return value


def _constant(name: str) -> float:
    raise _refused("NaN or infinity, which are not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _refused("a name twice in one object")
    return found


def _refused(what: str) -> Refused:
    return Refused(400, f"the body is {what}" if what.startswith("not") else f"the body holds {what}", code="bad_json")
