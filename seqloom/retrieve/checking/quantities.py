"""Numbers of a sentence with the units they are counted in."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.retrieve.checking.tokens import Token

_BETWEEN = frozenset(("to", "and", "or", "到", "至"))  # of a range, whose unit follows its second number


def quantities(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Numbers with their units. In "from 2 to 3 percent" both have the unit."""
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
    ranged = len(rest) == 3 and rest[0].form in _BETWEEN and (rest[1].kind, rest[2].kind) == ("number", "unit")
    return rest[2].form if ranged else ""
