"""What a message quotes of the user's data, cut so that the message stays readable."""

from __future__ import annotations

from collections.abc import Iterable

_VALUE, _NAME, _NAMES = 60, 40, 12  # characters, characters, names


def quoted(value: object, most: int = _VALUE) -> str:
    """A value as in Python source; of a long text the beginning."""
    value = value.item() if hasattr(value, "item") else value  # of numpy
    if isinstance(value, str) and len(value) > most:
        return f"{value[: most - 1]!r}… ({len(value):,} characters)"
    try:
        text = repr(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most else text[: most - 1] + "…"


def short(name: object, most: int = _NAME) -> str:
    """A name on one line: without a header, the name of a column may be any text."""
    text = " ".join(str(name).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def some(names: Iterable[object], most: int = _NAMES) -> str:
    """The first of many names."""
    given = list(names)
    return (", ".join(short(name) for name in given[:most]) or "none") + (", ..." if len(given) > most else "")
