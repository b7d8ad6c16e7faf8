"""Cells of a table as numbers, or as missing values.

Numbers with separators (1,234.5 or 1.234,5) are read if the whole column, or another one of the file, shows which is
meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted, short
from seqloom.data.numbers import LARGEST, as_number
from seqloom.data.numbers import is_number as is_plain

MISSING = {"", "nan", "na", "n/a", "<na>", "null", "none"}  # in upper or lower case
FLAGS = {"true": 1.0, "false": 0.0}
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$")  # commas between thousands
COMMA = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?$")  # decimal comma, points between thousands

Style = Literal["plain", "thousands", "comma"]


class NotPlain(UserError):
    """A cell that is no plain number; the whole column may show how to read it."""


def to_numbers(spec: str, column: str, cells: Any, lines: Sequence[int]) -> np.ndarray:
    """Cells as float64, NaN where missing; raises for one that is not a number, or too large."""
    try:
        ready = isinstance(cells, np.ndarray)
        read = float if ready or _without_underscores(cells) else as_number  # three times as fast
        numbers = cells.astype(np.float64) if ready else np.fromiter(map(read, cells), np.float64, len(cells))
    except (ValueError, TypeError, OverflowError):
        numbers = np.array([_number(spec, column, cell, lines[n]) for n, cell in enumerate(cells)])
        _check_flags(spec, column, cells, lines, numbers)
    if (large := np.abs(numbers) > LARGEST).any():
        row = int(large.argmax())
        what = "infinite" if np.isinf(numbers[row]) else f"beyond {LARGEST:g}"
        place = f"{spec}:{lines[row]}: {short(column)}={_bare(cells[row])}"
        raise UserError(f"{place} is {what}; fix it, or leave the cell empty")
    return numbers


def _check_flags(spec: str, column: str, cells: Any, lines: Sequence[int], numbers: np.ndarray) -> None:
    """True and False are numbers only among themselves, and beside 1 and 0."""
    flags = (n for n, cell in enumerate(cells) if isinstance(cell, str) and cell.strip().lower() in FLAGS)
    other = numbers[~np.isnan(numbers) & (numbers != 0) & (numbers != 1)]
    if len(other) and (row := next(flags, None)) is not None:
        place = f"{spec}:{lines[row]}: {short(column)}={_bare(cells[row])}"
        raise UserError(f"{place} is among numbers such as {other[0]:g}; fix it, or leave the cell empty")


def _without_underscores(cells: Any) -> bool:
    try:
        return "_" not in "".join(cells)
    except TypeError:  # not all are texts
        return False


def _bare(cell: Any) -> str:
    """A number as it is written."""
    return short(cell, 40) if isinstance(cell, str) else quoted(cell, 40)


def is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING) or cell != cell


def is_number(cell: Any) -> bool:
    return is_plain(cell) or (isinstance(cell, str) and cell.strip().lower() in FLAGS)


def _number(spec: str, column: str, cell: Any, line: int) -> float:
    if is_missing(cell):
        return np.nan
    if is_plain(cell):
        return as_number(cell)
    text = str(cell).strip()
    if text.lower() in FLAGS:
        return FLAGS[text.lower()]
    hint = "; write decimals with a point" if text.replace(",", "").lstrip("-").isdecimal() else ""
    hint = "; leave out the per cent sign" if text.endswith("%") else hint
    hint = "; leave out the underscores" if is_plain(text.replace("_", "")) else hint
    raise NotPlain(
        f"{spec}:{line}: {short(column)}={quoted(text)} is not a number{hint}; fix it, or leave the cell empty"
    )


def is_formatted(cell: Any) -> bool:
    """Whether it may be a number with separators."""
    return isinstance(cell, str) and any(style.match(cell.strip()) for style in (GROUPED, COMMA))


STYLES: frozenset[Style] = frozenset({"plain", "thousands", "comma"})


def narrowed(possible: frozenset[Style], cells: Iterable[Any]) -> frozenset[Style]:
    """Those of these readings that suit all cells."""
    left = set(possible)
    for cell in cells:
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or is_missing(text) or text.lower() in FLAGS:
            continue
        plain = is_number(text)
        left -= set() if plain else {"plain"}
        left -= set() if plain or GROUPED.match(text) else {"thousands"}
        left -= set() if COMMA.match(text) else {"comma"}
        if not left:
            break
    return frozenset(left)


def settled(styles: Mapping[str, frozenset[Style]], separator: str) -> dict[str, Style]:
    """One reading for each column: plain, if possible. One that has two takes that of the other columns of the file;
    otherwise, in a file with commas between its columns, commas within numbers are no decimal ones. A column without
    any is left out."""
    styles = {column: frozenset({"plain"}) if "plain" in found else found for column, found in styles.items()}
    sure = {next(iter(found)) for found in styles.values() if len(found) == 1} - {"plain"}
    rest: Style | None = sure.pop() if len(sure) == 1 else "thousands" if separator == "," else None
    decided: dict[str, Style] = {}
    for column, found in styles.items():
        if len(found) == 1:
            decided[column] = next(iter(found))
        elif found and rest:
            decided[column] = rest
        elif found:
            raise UserError(
                f"column {column!r}: a number like 1,234 may be 1234 or 1.234, and nothing in the file shows which; "
                "write numbers without separators"
            )
    return decided


def as_plain(cells: Sequence[Any], style: Style) -> list[Any]:
    """Texts with the separators of this style as plain numbers."""
    if style == "thousands":
        return [cell.replace(",", "") if isinstance(cell, str) else cell for cell in cells]
    return [cell.replace(".", "").replace(",", ".") if isinstance(cell, str) else cell for cell in cells]
