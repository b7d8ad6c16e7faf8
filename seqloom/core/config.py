"""Strict configuration: TOML or overrides like `train.steps=200` in, checked objects out.

All mistakes are reported at once, each with its dotted path and, if there is a close match, a suggestion.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from functools import cache
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.core.toml import parse_toml
from seqloom.core.values import LARGEST, check_value
from seqloom.core.words import shorten

_BOUNDS = ("ge", "gt", "le", "lt")
_LIST = "write a list, such as [1, 2]"
_MESSAGES = {"tuple_type": _LIST, "list_type": _LIST, "dict_type": "write a table, such as {a = 1}"}  # of pydantic


class Strict(BaseModel):
    """A section of the configuration: typed, frozen, without unknown options, and every value of a sane size."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    largest: ClassVar[int] = LARGEST

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and "bool" not in str(cls.model_fields[info.field_name or ""].annotation):
            raise ValueError("true and false are no values of this option")
        return value

    @field_validator("*")
    @classmethod
    def _is_sane(cls, value: Any, info: ValidationInfo) -> Any:
        check_value(value, *bounds(cls, info.field_name or ""))
        return value


@cache
def bounds(kind: type[Strict], option: str) -> tuple[float | None, float | None]:
    """Least and largest number where the option states none of its own; else None."""
    field = kind.model_fields[option]
    own = {name for constraint in (*field.metadata, *_inside(field.annotation)) for name in _BOUNDS
           if hasattr(constraint, name)}  # fmt: skip
    return (None if own & {"ge", "gt"} else -kind.largest, None if own & {"le", "lt"} else kind.largest)


def _inside(annotation: Any) -> Iterator[Any]:
    """The constraints within, as of the items of a list."""
    for part in get_args(annotation):
        yield from getattr(part, "__metadata__", ())
        yield from (found for one in getattr(part, "__metadata__", ()) for found in getattr(one, "metadata", ()))
        yield from _inside(part)


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["train.steps=200", "model.tie=true"]` -> `{"train.steps": 200, "model.tie": True}`."""
    parsed = {}
    for text in overrides:
        path, equals, value = text.partition("=")
        section, _, option = (part.strip() for part in path.partition("."))
        if not (equals and section and option):
            raise UserError(f"-o {shorten(text, 60)}: write it as section.option=value, for example train.steps=200")
        parsed[f"{section}.{option}"] = _parse_value(value.strip())
    return parsed


def as_overrides(*layers: Mapping[str, Any]) -> list[str]:
    """The inverse: settings as a user would type them after -o. A layer is nested or dotted, as in `merge`."""
    merged = merge(*layers)
    return [f"{name}.{option}={_typed(value)}" for name, given in merged.items() for option, value in given.items()]


def merge(*layers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Merge layers of settings; later ones win. A layer is nested ({section: {option: value}}) or dotted."""
    merged: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for key, value in layer.items():
            section, dot, option = key.partition(".")
            if not dot and not isinstance(value, Mapping):
                raise UserError(f"{shorten(key)}: not in a section; write it as section.option, such as train.steps")
            for name, one in {option: value}.items() if dot else value.items():
                _check(f"{section}.{name}", one)
                merged.setdefault(section, {})[name] = one
            merged.setdefault(section, {})
    return merged


def _check(path: str, value: Any) -> None:
    """What is checked here again by the section must hold before, where names of files and tasks are looked up."""
    try:
        check_value(path)
        check_value(value)
    except ValueError as error:
        raise UserError(f"{shorten(path)}={quoted(value, 40)}: {error}") from None


def validate(kinds: Mapping[str, type[Strict]], values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Validate every section and report all mistakes on one line."""
    mistakes = [_unknown(name, kinds) for name in values if name not in kinds]
    sections = {}
    for name, kind in kinds.items():
        try:
            sections[name] = kind.model_validate(values.get(name, {}))
        except ValidationError as error:
            mistakes += [_mistake(name, kind, e) for e in _once(error.errors())]
    if mistakes:
        raise UserError("; ".join(mistakes))
    return sections


def _once(errors: Iterable[Any]) -> Iterable[Any]:
    """Of an option that is an int or a float, only why it is not the latter."""
    found = {}
    for error in errors:
        path = error["loc"][:1] if error["loc"][1:] in (("int",), ("float",)) else error["loc"]
        found[path] = error | {"loc": path}
    return found.values()


def options(kind: type[Strict]) -> list[tuple[str, str, str]]:
    """(name, default, description) of every option, for help and docs."""
    return [
        (name, "required" if field.is_required() else repr(field.default), field.description or "")
        for name, field in kind.model_fields.items()
    ]


def _parse_value(text: str) -> Any:
    """As in TOML; what is not TOML, or is a date, is a text."""
    try:
        parsed = parse_toml(f"value = {text}")
    except ValueError:
        return text
    value = parsed.pop("value")
    return text if parsed or isinstance(value, date | time) else value


def _typed(value: Any) -> str:
    if isinstance(value, str):
        return value if _parse_value(value.strip()) == value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(json.dumps(item) if isinstance(item, str) else _typed(item) for item in value)}]"
    return str(value)


def _mistake(section: str, kind: type[Strict], error: Any) -> str:
    path = shorten(".".join(str(part) for part in (section, *error["loc"])), 80)
    if error["type"] == "extra_forbidden":
        return _unknown(path, [f"{section}.{name}" for name in kind.model_fields])
    if error["type"] == "missing":
        return f"{path}: missing"
    message = _MESSAGES.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    given = f"={quoted(error['input'], 40)}" if error["loc"] else ""  # else it is about the section as a whole
    return f"{path}{given}: {message[0].lower()}{message[1:]}"


def _unknown(path: str, known: Iterable[str]) -> str:
    path, known = shorten(path, 60), list(known)
    what = "option" if "." in path else "section"
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.6)
    if near:
        return f"{path}: no such {what}; did you mean {near[0]}?"
    return f"{path}: no such {what}; " + (f"known: {', '.join(known)}" if known else "this section has no options")
