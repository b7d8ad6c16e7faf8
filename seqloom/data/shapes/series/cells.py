"""Cells of a table as numbers, or as missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.core.errors import UserError

MISSING = {"", "nan", "na", "n/a", "<na>", "null", "none"}  # in upper or lower case
FLAGS = {"true": 1.0, "false": 0.0}


def to_numbers(spec: str, column: str, cells: Any, lines: Sequence[int]) -> np.ndarray:
    """Cells as float64, NaN where missing; raises for one that is not a number, or infinite."""
    try:
        ready = isinstance(cells, np.ndarray)
        numbers = cells.astype(np.float64) if ready else np.fromiter(map(float, cells), np.float64, len(cells))
    except (ValueError, TypeError):
        numbers = np.array([_number(spec, column, cell, lines[n]) for n, cell in enumerate(cells)])
    if (infinite := np.isinf(numbers)).any():
        row = int(infinite.argmax())
        raise UserError(f"{spec}:{lines[row]}: {column}={cells[row]} is infinite; fix it, or leave the cell empty")
    return numbers


def is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING) or cell != cell


def is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError):
        return isinstance(cell, str) and cell.strip().lower() in FLAGS
    return True


def _number(spec: str, column: str, cell: Any, line: int) -> float:
    if is_missing(cell):
        return np.nan
    try:
        return float(cell)
    except (ValueError, TypeError):
        pass
    text = str(cell).strip()
    if text.lower() in FLAGS:
        return FLAGS[text.lower()]
    hint = "; write decimals with a point" if text.replace(",", "").lstrip("-").isdecimal() else ""
    raise UserError(f"{spec}:{line}: {column}={text!r} is not a number{hint}; fix it, or leave the cell empty")
