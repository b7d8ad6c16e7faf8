"""Wide tables: a line is a whole series, its name first, then its values; empty cells at the end are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.role_names import flag
from seqloom.data.shapes.series.cells import is_missing, is_number, to_numbers
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.table import Table

VALUE = "value"  # the column of a wide file
_FEWEST = 4  # cells on a line, to tell a whole series from a time step
_NUMBERED = re.compile(r"(.*?)(\d+)$")


def looks_wide(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first lines are whole series: a different name on each, then only numbers, under a header that counts
    (V1, V2, ...), without a header, or of different lengths."""
    if not rows or not rows[0]:
        return False
    headed = not any(is_number(cell) for cell in rows[0][1:])
    body = rows[1:] if headed else rows
    names = [row[0].strip() for row in body]
    if not body or len(set(names)) < len(names) or any(is_number(name) or not name for name in names):
        return False
    cells = [[cell for cell in row[1:] if not is_missing(cell)] for row in body]
    if not all(is_number(cell) for row in cells for cell in row) or max(map(len, body)) < _FEWEST:
        return False
    if any(_is_date(name) for name in names):
        return False
    return not headed or len(set(map(len, rows))) > 1 or _counts(rows[0])


def read_wide(spec: str, rows: Iterable[tuple[int, list[str]]], data: Options) -> Table:
    if strange := [f"data.{name}" for name in ("time", "targets", "past", "known") if getattr(data, name)]:
        raise UserError(f"{spec}: a wide file has only names and values; leave out {', '.join(strange)}")
    names: dict[str, int] = {}
    values, lines, place = [], [], 0
    for n, (line, fields) in enumerate(rows):
        if n == 0 and (data.series in fields or not any(is_number(cell) for cell in fields[1:])):
            place = fields.index(data.series) if data.series in fields else 0
            continue
        if n == 0 and _are_years(fields[1:]):
            raise UserError(
                f"{spec}:{line}: a header of years, or a series? For a header, set {flag('series', fields[0])}; for a "
                "series, add a header above it"
            )
        name = fields.pop(place).strip()
        if name in names:
            raise UserError(f"{spec}:{line}: duplicate series {quoted(name)}; give each series one line")
        names[name] = len(names)
        while fields and is_missing(fields[-1]):
            fields.pop()
        values.append(to_numbers(spec, VALUE, fields, [line] * len(fields)))
        lines.append(line)
    if not names:
        raise UserError(f"{spec}: contains no rows")
    sizes = [len(row) for row in values]
    flat = np.concatenate(values)[:, None]
    return Table(
        spec, [VALUE], flat, np.repeat(np.arange(len(sizes)), sizes), list(names), None, np.repeat(lines, sizes)
    )


def _is_date(name: str) -> bool:
    return re.match(r"\d{1,4}[-/.年]\d{1,2}", name) is not None


def _counts(header: Sequence[str]) -> bool:
    """Whether the names of the columns after the first count up: V2, V3, ... or 1, 2, ..."""
    found = [_NUMBERED.match(name.strip()) for name in header[1:]]
    known = [(match[1], int(match[2])) for match in found if match]
    return len(known) == len(found) and all(a[0] == b[0] and b[1] == a[1] + 1 for a, b in pairwise(known))


def _are_years(cells: Sequence[str]) -> bool:
    """Whether they are consecutive years."""
    numbers = [int(cell) for cell in cells if cell.strip().isdigit() and 1000 <= int(cell) < 3000]
    return len(numbers) == len(cells) > 2 and all(b - a == 1 for a, b in pairwise(numbers))
