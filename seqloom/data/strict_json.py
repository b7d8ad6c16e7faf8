"""JSON as it has to be in data: no key twice, no lone surrogate, no infinity, flat enough to be walked; NaN is null."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted

DEEPEST = 64  # lists and objects in each other

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half a character
_HALF = re.compile("[\ud800-\udfff]")


class _Unfit(ValueError):
    """Valid JSON that cannot be data."""


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """`line`: that the text begins on, for errors."""
    place = f"{path}:{line}"
    try:
        found = json.loads(text, object_pairs_hook=_distinct, parse_constant=_constant)
        if text.count("[") + text.count("{") > DEEPEST or _SURROGATE.search(text):
            _check(found)
    except json.JSONDecodeError as error:
        extra = "; if it has one object per line, rename it to .jsonl"
        way_out = extra if error.msg == "Extra data" and path.suffix.lower() == ".json" else ""
        place = f"{path}:{line + error.lineno - 1}"
        what = error.msg.removesuffix(" at")  # of a text that does not end
        raise UserError(f"{place}: not valid JSON: {what} at column {error.colno}{way_out}") from None
    except RecursionError:
        raise UserError(f"{place}: JSON nested too deeply; at most {DEEPEST} levels are read") from None
    except _Unfit as error:
        raise UserError(f"{place}: {error}") from None
    except ValueError:  # Python reads no integer of more than 4,300 digits
        raise UserError(f"{place}: not valid JSON: a number of thousands of digits; fix it, or leave it out") from None
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Unfit(f"the key {quoted(twice)} occurs twice in one object; give each its own name")
    return found


def _constant(name: str) -> None:
    if name != "NaN":
        raise _Unfit(f"{name} is not a number; fix it, or write null")


def _check(found: Any) -> None:
    """Raise for half a character in a text or a key, and for values that are nested too deeply."""
    waiting: list[tuple[Any, int, str]] = [(found, 0, "")]
    while waiting:
        value, depth, column = waiting.pop()
        if isinstance(value, str):
            if half := _HALF.search(value):
                where = f"column {quoted(column)}" if column else "a name"
                raise _Unfit(f"{where} has a lone surrogate (\\u{ord(half[0]):04x}), half a character")
        elif depth > DEEPEST:
            raise RecursionError
        elif isinstance(value, dict):
            waiting += [(name, depth, "") for name in value]
            waiting += [(inner, depth + 1, column or name) for name, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(inner, depth + 1, column) for inner in value]
