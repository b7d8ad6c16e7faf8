"""Whether the first line of a table is a header.

A header has distinct, short cells that are no numbers. Such a line is one if a cell is a usual name of a column, or if
it stands above numbers or dates. Otherwise the line is tested as if it were an ordinary row: the probability that such
a row differs from all others as much (a new value in a column of few values, a very short cell in a column of
sentences) is combined over the columns by Fisher's method.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from seqloom.data.numbers import is_number
from seqloom.data.role_names import is_usual, language_of

LONGEST = 100  # characters of a name
WORDS = 6  # words of a name; more are a sentence
SURE = 0.02  # probability below which the first line is not an ordinary row
FEW = 20  # rows; with fewer, nothing can be tested, and what is usual for the format decides
ENDS = tuple(".!?。！？…,，;；")
DATE = re.compile(
    r"\d{4}[-/.年]\d{1,2}([-/.月]\d{1,2}日?)?([T ]\d{1,2}:.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?"
    r"|((mon|tue|wed|thu|fri|sat|sun)[a-z]*[,.]? )?(\d{1,2}(st|nd|rd|th)?[.]? )?"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[.,]? \d[\d:, +a-z-]*",
    re.IGNORECASE,
)


def is_header(first: Sequence[str], below: Sequence[Sequence[str]], usual: bool) -> bool:
    """`usual`: whether files of this format usually have a header, if nothing else decides."""
    if not below:
        return _could_be_names([cell.strip() for cell in first])
    cells = [[cell.strip() for cell in column if cell.strip()] for column in zip(*below, strict=True)]
    filled = [n for n, column in enumerate(cells) if first[n].strip() or 20 * len(column) > len(below)]
    names, columns = [first[n].strip() for n in filled], [cells[n] for n in filled]
    if not _could_be_names(names):
        return False
    if any(column and _is_measured(column) for column in columns):
        return True
    if any(name in column for name, column in zip(names, map(set, columns), strict=True)):
        return False
    if any(map(_is_sentence, names)):
        return False
    if any(map(is_usual, names)) or sum(language_of(name) is not None for name in names) > 1:
        return True
    if len(below) < FEW:
        return usual
    chances = [_chance(name, column) for name, column in zip(names, columns, strict=True) if column]
    return _combined(chances) < SURE


def is_date(cell: str) -> bool:
    return bool(DATE.fullmatch(cell))


def _could_be_names(names: Sequence[str]) -> bool:
    """Distinct and short, and no values; the first may be empty, as above the index that pandas writes."""
    if any(not name for name in names[1:]) or len({name.casefold() for name in names}) < len(names):
        return False
    return not any(is_number(name) or is_date(name) or len(name) > LONGEST for name in names) and any(names)


def _is_sentence(name: str) -> bool:
    return name.endswith(ENDS) or len(name.split()) > WORDS or (not name.isascii() and len(name) > 4 * WORDS)


def _is_measured(column: Sequence[str]) -> bool:
    """Numbers or dates, with a few exceptions if there are many rows."""
    return max(sum(map(is_number, column)), sum(map(is_date, column))) >= 0.95 * len(column)


def _chance(name: str, column: Sequence[str]) -> float:
    """The probability that a row of this column is as unlike the others as this cell is."""
    counts = Counter(column)
    single = sum(1 for count in counts.values() if count == 1)
    short = sum(1 for cell in column if len(cell) <= 3 * len(name) and not _is_sentence(cell))
    few = 2 * len(counts) <= len(column)  # then Good-Turing: how often a row's value occurs nowhere else
    return (1 + (single if few else short)) / (1 + len(column))


def _combined(chances: Sequence[float]) -> float:
    """Fisher's method: the probability of a product of p-values as small as this one."""
    product = math.prod(chances)
    if product <= 0 or not chances:
        return 0.0 if chances else 1.0
    log = -math.log(product)
    return product * sum(log**k / math.factorial(k) for k in range(len(chances)))
