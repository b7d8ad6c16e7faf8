"""Data whose alignment is known: reversed letters, words translated into another order, dates.

`links` of a batch: the source tokens that an output comes from. An output with one link has a sure one; of several,
each is merely possible; outputs without links, such as the dashes of a date, are not scored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from seqloom.pages.words import Pair
from seqloom.studies._pairs import Draw, Pairs, written

LETTERS, LENGTH = 16, 12  # of reversed strings
WORDS, SENTENCE = 10, 8  # nouns, and as many adjectives; words of a sentence
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WRITTEN = "0123456789-"  # characters of an output date, with the first ids
CHARACTERS = WRITTEN + "abcdefghijklmnopqrstuvwxyz ,"
WIDTH = len("september 28, 2026")


@dataclass(frozen=True)
class Data:
    title: Pair
    names: list[str]  # of the ids in sources and targets; the start token is the id after them
    outputs: int
    draw: Draw
    kind: list[int]  # of each id: a source token is replaced only by one of its kind
    target: Callable[[int], str]  # the name of an output


def _reversal(rows: int, generator: torch.Generator) -> Pairs:
    sources = torch.randint(LETTERS, (rows, LENGTH), generator=generator)
    order = torch.arange(LENGTH - 1, -1, -1).expand(rows, -1)
    return written(sources, sources.flip(1), LETTERS, one_hot(order, LENGTH).bool())


def _sentences(rows: int, generator: torch.Generator) -> Pairs:
    """Ids below WORDS are nouns. Every adjective before a noun changes places with it; word n becomes word n + 7 of its
    class."""
    sources = torch.randint(2 * WORDS, (rows, SENTENCE), generator=generator)
    adjective = sources >= WORDS
    swapped = adjective[:, :-1] & ~adjective[:, 1:]
    order = torch.arange(SENTENCE).repeat(rows, 1)
    order[:, :-1] += swapped.long()
    order[:, 1:] -= swapped.long()
    targets = (sources % WORDS + 7) % WORDS + WORDS * adjective
    return written(sources, targets.gather(1, order), 2 * WORDS, one_hot(order, SENTENCE).bool())


def _dates(rows: int, generator: torch.Generator) -> Pairs:
    """`28 march 2026` or `march 28, 2026`, filled with spaces, to `2026-03-28`."""
    sources, targets, links = [], [], torch.zeros(rows, 10, WIDTH, dtype=torch.bool)
    draws = [torch.randint(most, (rows,), generator=generator).tolist() for most in (28, 12, 2000, 2)]
    for row, (day, month, year, order) in enumerate(zip(*draws, strict=True)):
        day, month, year = day + 1, month + 1, year + 1000
        name = MONTHS[month - 1]
        source = f"{day} {name} {year}" if order else f"{name} {day}, {year}"
        sources.append([CHARACTERS.index(c) for c in source.ljust(WIDTH)])
        targets.append([CHARACTERS.index(c) for c in f"{year}-{month:02d}-{day:02d}"])
        place = source.index(str(year))
        links[row, range(4), range(place, place + 4)] = True
        place = source.index(name)
        links[row, 5:7, place : place + len(name)] = True
        place = source.index(str(day))
        if day > 9:
            links[row, 8, place] = links[row, 9, place + 1] = True
        else:  # the zero comes from the day's being alone: from it or its neighbours
            links[row, 8, max(0, place - 1) : place + 2] = links[row, 9, place] = True
    return written(torch.tensor(sources), torch.tensor(targets), len(CHARACTERS), links)


def _kind(character: str) -> int:
    return 0 if character.isdigit() else 1 if character.isalpha() else 2


_NOUNS = [f"n{n}" for n in range(WORDS)]
_WORDS = [*_NOUNS, *(f"a{n}" for n in range(WORDS))]
DATA = {
    "reversal": Data(
        ("letters in reverse", "反转的字母"),
        [chr(ord("a") + n) for n in range(LETTERS)],
        LETTERS,
        _reversal,
        [0] * LETTERS,
        lambda n: chr(ord("a") + n),
    ),
    "words": Data(
        ("words in another order", "换序的词"),
        _WORDS,
        2 * WORDS,
        _sentences,
        [0] * WORDS + [1] * WORDS,
        lambda n: _WORDS[n].upper(),
    ),
    "dates": Data(
        ("dates", "日期"),
        list(CHARACTERS),
        len(WRITTEN),
        _dates,
        [_kind(character) for character in CHARACTERS],
        lambda n: WRITTEN[n],
    ),
}


def another(tokens: Tensor, kind: list[int], generator: torch.Generator) -> Tensor:
    """Another token of the same kind for each; where there is none, the same."""
    kinds = torch.tensor(kind)
    able = kinds[tokens][:, None] == kinds
    able[torch.arange(len(tokens)), tokens] = False
    drawn = (able * (torch.rand(able.shape, generator=generator) + 1)).argmax(1)
    return torch.where(able.any(1), drawn, tokens)
