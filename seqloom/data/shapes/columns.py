"""Columns by their roles: `text=review,label=stars`, in every command and in Python, for every shape of data.

A shape declares which of its data options each role sets (`Shape.columns`); the settings keep their own names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.data.shapes import find_shape, shape_names
from seqloom.data.shapes.shape import AnyShape

Columns = Mapping[str, str | int]  # the name of each role's column, or its number without a header

_ROLE = re.compile(r"(?:^|,)\s*(\w+)\s*=")
_NUMBER = re.compile(r"-?\d+")


def parse_columns(given: Iterable[str]) -> dict[str, str]:
    """`["text=review,label=stars"]` -> `{"text": "review", "label": "stars"}`.

    A comma separates only if a role follows, or a word that is nearly one: `targets=load,temp` is one role.
    """
    known = {role for name in shape_names() for role in find_shape(name).columns}
    found: dict[str, str] = {}
    for text in given:
        parts = [m for m in _ROLE.finditer(text) if m.start() == 0 or _nearest(m[1], known)]
        if not parts or parts[0].start():
            raise UserError(f"--columns {text}: write ROLE=NAME, for example --columns text=review,label=stars")
        for part, end in zip(parts, [*(m.start() for m in parts[1:]), len(text)], strict=True):
            role, name = part[1], text[part.end() : end].strip()
            if not name:
                raise UserError(f"--columns {text}: {role}= names no column; write {role}=NAME")
            if role in found:
                raise UserError(f"--columns: {role} is given twice, {found[role]} and {name}; give it once")
            found[role] = name
    return found


def column_options(shape: AnyShape, columns: Columns) -> Json:
    """The data options that these roles set."""
    if not isinstance(columns, Mapping):
        raise UserError(f"columns: give a dict, such as {{'text': 'review'}}, not {type(columns).__name__}")
    found: Json = {}
    for role, name in columns.items():
        if role not in shape.columns:
            near = _nearest(role, shape.columns)
            hint = f"; did you mean {quoted(near)}?" if near else ";"
            raise UserError(f"--columns: unknown role {quoted(role)}{hint} this task has {', '.join(roles_of(shape))}")
        option = shape.columns[role]
        if option in shape.numbered and _NUMBER.fullmatch(str(name).strip()):
            found[shape.numbered[option]] = int(name)
        else:
            found[option] = name
    return found


def roles_of(shape: AnyShape) -> list[str]:
    """The roles of its columns, without second names for the same one."""
    first: dict[str, str] = {}
    for role, option in shape.columns.items():
        first.setdefault(option, role)
    return list(first.values())


def role_of(shape: AnyShape, option: str) -> str | None:
    """The role that sets a data option; None if the option names no column."""
    named = next((name for name, number in shape.numbered.items() if number == option), option)
    return next((role for role, own in shape.columns.items() if own == named), None)


def _nearest(role: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(role, known, n=1, cutoff=0.7)), None)
