"""Numbers of a sentence with the units they are counted in."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.retrieve.checking.tokens import Token

_BETWEEN = frozenset(("to", "and", "or", "到", "至"))  # of a range, whose unit follows its second number


def quantities(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Numbers with their units. In "from 2 to 3 percent" and "2-3 percent" both have the unit."""
    found: list[tuple[str, str]] = []
    for n, token in enumerate(tokens):
        if token.kind == "number":
            found.append((token.form, _unit_of(tokens, n)))
    return found


def _unit_of(tokens: Sequence[Token], n: int) -> str:
    rest = tokens[n + 1 : n + 4]
    if n and tokens[n - 1].form in ("$", "€", "£"):
        return tokens[n - 1].form
    if rest and rest[0].kind == "unit":
        return rest[0].form
    ranged = rest[1:] if rest and rest[0].form in _BETWEEN else rest if _hyphened(tokens[n : n + 2]) else []
    return ranged[1].form if [t.kind for t in ranged[:2]] == ["number", "unit"] else ""


def _hyphened(pair: Sequence[Token]) -> bool:
    """Two numbers with one sign between them, which is a break or no token."""
    return len(pair) == 2 and pair[1].start - pair[0].end == 1
