"""The HTML shell of every page: self-contained, makes no requests, and runs only its own scripts.

Text from users and models must be escaped where it enters the body.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any


def page(title: str, body: str, *, css: str = "", scripts: Sequence[str] = ()) -> str:
    """`css`: added to base.css; `scripts`: added at the end of the body, the only ones that the policy allows."""
    inside = [body, *(f"<script>{script}</script>" for script in scripts)]
    return Template(part("shell.html")).substitute(
        policy=escape(_policy(scripts), quote=False),
        title=escape(title),
        css=f"{part('base.css')}\n{css}",
        body="\n".join(inside),
    )


def facts(found: Mapping[str, object]) -> str:
    """A list of names and values."""
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(str(v))}</dd></div>" for k, v in found.items() if v)


def embedded(value: Any) -> str:
    """JSON that cannot close the element it is embedded in."""
    text = json.dumps(_finite(value), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def part(name: str) -> str:
    """The text of a file in this folder."""
    return files("seqloom.pages").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = f" script-src {' '.join(repr(f'sha256-{found}') for found in hashes)};" if hashes else ""
    return f"default-src 'none';{allowed} style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def _finite(value: Any) -> Any:
    """JSON has no NaN: numbers that are not finite become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
