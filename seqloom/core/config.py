"""Strict configuration: TOML or overrides like `train.steps=200` in, checked objects out.

All mistakes are reported at once, each with its dotted path and, if there is a close match, a suggestion.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from seqloom.core.errors import UserError


class Strict(BaseModel):
    """A section of the configuration: typed, frozen, and without unknown options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; a recipe is a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["train.steps=200", "model.tie=true"]` -> `{"train.steps": 200, "model.tie": True}`."""
    parsed = {}
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals or "." not in path:
            raise UserError(f"-o {text}: write it as section.option=value, for example train.steps=200")
        parsed[path.strip()] = _parse_value(value.strip())
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
            if dot:
                merged.setdefault(section, {})[option] = value
            elif isinstance(value, Mapping):
                merged.setdefault(section, {}).update(value)
            else:
                raise UserError(f"{key}: not in a section; write it as section.option, for example train.{key}")
    return merged


def validate(kinds: Mapping[str, type[Strict]], values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Validate every section and report all mistakes on one line."""
    mistakes = [_unknown(name, kinds) for name in values if name not in kinds]
    sections = {}
    for name, kind in kinds.items():
        try:
            sections[name] = kind.model_validate(values.get(name, {}))
        except ValidationError as error:
            mistakes += [_mistake(name, kind, e) for e in error.errors()]
    if mistakes:
        raise UserError("; ".join(mistakes))
    return sections


def options(kind: type[Strict]) -> list[tuple[str, str, str]]:
    """(name, default, description) of every option, for help and docs."""
    return [
        (name, "required" if field.is_required() else repr(field.default), field.description or "")
        for name, field in kind.model_fields.items()
    ]


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _typed(value: Any) -> str:
    if isinstance(value, str):
        return value if _parse_value(value.strip()) == value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(json.dumps(item) if isinstance(item, str) else _typed(item) for item in value)}]"
    return str(value)


def _mistake(section: str, kind: type[Strict], error: Any) -> str:
    path = ".".join(str(part) for part in (section, *error["loc"]))
    if error["type"] == "extra_forbidden":
        return _unknown(path, [f"{section}.{name}" for name in kind.model_fields])
    if error["type"] == "missing":
        return f"{path}: missing"
    message = error["msg"].removeprefix("Value error, ")
    given = f"={_shown(error['input'])}" if error["loc"] else ""  # else it is about the section as a whole
    return f"{path}{given}: {message[0].lower()}{message[1:]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _unknown(path: str, known: Iterable[str]) -> str:
    known = list(known)
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.6)
    if near:
        return f"{path}: no such option; did you mean {near[0]}?"
    return f"{path}: no such option; " + (f"known: {', '.join(known)}" if known else "this section has no options")
