"""Tables for terminals: as wide as the screen at most, without a broken word or number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from seqloom.core.rows import Json

_WORD = 24  # longest word, in columns, that is never broken
_GAP = "  "
_BREAK = re.compile(r"(?<=[/_-])(?=\w)|(?<= )")  # a long name or path may go on in the next line after one of these


def print_table(rows: list[Json]) -> None:
    from rich.console import Console

    if not rows:
        print("nothing found")
        return
    console = Console()
    head, *body = table_lines(rows, console.width)
    console.print(head, style="bold", markup=False, highlight=False, no_wrap=True, crop=False)
    print("\n".join(body))


def table_lines(rows: list[Json], width: int) -> list[str]:
    """The head, then the rows. On a narrow screen, texts are wrapped and the last columns of numbers left out."""
    names = list(rows[0])
    texts = [[_cell(row[name]) for name in names] for row in rows]
    numeric = [any(isinstance(row[name], int | float) for row in rows) for name in names]
    heads = [name.replace("_", " ") for name in names]
    columns = list(zip(heads, *texts, strict=True))
    least = [max(map(_size, column)) if number else _least(column)
             for column, number in zip(columns, numeric, strict=True)]  # fmt: skip
    shown = len(names)
    while shown > 1 and sum(least[:shown]) + len(_GAP) * (shown - 1) > width and numeric[shown - 1]:
        shown -= 1
    widths = _fit([max(map(_size, column)) for column in columns[:shown]], least[:shown], width)
    drawn = []
    for row in [heads, *texts]:
        cells = [_wrap(text, size) for text, size in zip(row[:shown], widths, strict=True)]
        for n in range(max(map(len, cells))):
            line = [cell[n] if n < len(cell) else "" for cell in cells]
            padded = map(_pad, line, widths, numeric)
            drawn.append(_GAP.join(padded).rstrip())
    return _one_head(drawn, max(len(_wrap(head, size)) for head, size in zip(heads, widths, strict=False)))


def _one_head(lines: list[str], count: int) -> list[str]:
    """The lines of the head as one text."""
    return ["\n".join(lines[:count]), *lines[count:]]


def _fit(widths: list[int], least: Sequence[int], width: int) -> list[int]:
    """Narrow the widest column, again and again, until all fit."""
    widths = list(widths)
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        wide = [n for n in range(len(widths)) if widths[n] > least[n]]
        if not wide:
            break
        widths[max(wide, key=lambda n: widths[n])] -= 1
    return widths


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and _size((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while _size(lines[-1].rstrip()) > width:
            cut = next(n for n in range(len(lines[-1]), 0, -1) if _size(lines[-1][:n]) <= max(2, width))
            cut = max((place.end() for place in re.finditer(r"[/,_-]", lines[-1][:cut])), default=cut)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return [line.rstrip() for line in lines]


def _pieces(text: str) -> list[str]:
    """At spaces; names and paths also inside, if they are alone in their cell."""
    return _BREAK.split(text) if " " not in text.strip() else re.split(r"(?<= )", text)


def _least(column: Iterable[str]) -> int:
    return min(_WORD, max(_size(piece.rstrip()) for text in column for piece in _pieces(text)))


def _pad(text: str, width: int, number: bool) -> str:
    room = " " * (width - _size(text))
    return room + text if number else text + room


def _size(text: str) -> int:
    """Width in terminal columns: Chinese characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else " ".join(str(value).split("\n"))
