"""The problems: small tasks that tell one kind of memory from another, drawn on the fly, with exact answers.

A problem draws rows of one size. `measure` says for every answer how hard it was (the length read, or the number of
pairs to remember); answers up to `trained` were practised, those at `scored` are what the figure in the table is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.batch import IGNORE
from seqloom.core.score import Text

MODULUS = 5
KEYS = 10  # of the small associative recall, and as many values: a vocabulary of 20
SYMBOLS = 20  # of induction
MANY_KEYS = 64  # of the recall of many pairs, and as many values


class Rows(NamedTuple):
    inputs: Tensor  # (B, T)
    targets: Tensor  # (B, T); IGNORE where nothing is asked
    measure: Tensor  # (B, T): length or number of pairs, where something is asked
    guess: Tensor | None = None  # (B, T): best guess that knows the values of a row, but not which key they go with


Draw = Callable[[int, int, torch.Generator], Rows]  # (rows, size, generator)


@dataclass(frozen=True)
class Problem:
    name: str
    title: Text
    draw: Draw
    vocabulary: int
    answers: int
    sizes: tuple[int, ...]  # of the rows in training, each step one of them
    tested: tuple[int, ...]  # of the test rows
    trained: int  # largest measure in training
    scored: tuple[int, int]  # measures that the score is the mean over, from and to
    edges: tuple[int, ...]  # upper ends of the ranges of measures that are shown apart
    counts: str = "length"  # what the measure is: length, pairs, or pairs so far
    batches: int = 1  # of rows in a step; more where a row has a single answer

    @property
    def lengths(self) -> list[int]:
        """Tokens of a row of each tested size."""
        return [self.draw(1, size, torch.Generator()).inputs.size(1) for size in self.tested]

    @property
    def beyond(self) -> bool:
        """Whether it is scored at sizes that were not trained."""
        return self.scored[0] > self.trained


def parity(rows: int, size: int, generator: torch.Generator) -> Rows:
    """Bits; after each: is the number of ones so far odd?"""
    bits = torch.randint(2, (rows, size), generator=generator)
    return Rows(bits, bits.cumsum(1) % 2, _lengths(bits))


def modular(rows: int, size: int, generator: torch.Generator) -> Rows:
    """2 + 3 - 4 + 1 ...; at each number: the value of the expression so far, modulo 5."""
    numbers = torch.randint(MODULUS, (rows, (size + 1) // 2), generator=generator)
    minus = torch.randint(2, (rows, size // 2), generator=generator)
    inputs = torch.empty(rows, size, dtype=torch.long)
    inputs[:, ::2], inputs[:, 1::2] = numbers, MODULUS + minus
    signs = torch.cat((torch.ones(rows, 1, dtype=torch.long), 1 - 2 * minus), 1)
    targets = torch.full_like(inputs, IGNORE)
    targets[:, ::2] = (signs[:, : numbers.size(1)] * numbers).cumsum(1) % MODULUS
    return Rows(inputs, targets, _lengths(inputs))


def recall(rows: int, size: int, generator: torch.Generator) -> Rows:
    """key value key value ...; at each key that came before: the value that follows it in this row."""
    values = torch.randint(KEYS, (rows, KEYS), generator=generator)
    keys = torch.randint(KEYS, (rows, size // 2), generator=generator)
    paired = values.gather(1, keys)
    inputs = torch.stack((keys, KEYS + paired), 2).flatten(1)
    earlier = (keys[:, :, None] == keys[:, None, :]).tril(-1)  # (B, pair, earlier pair)
    known = earlier.any(2)
    targets = torch.full_like(inputs, IGNORE)
    targets[:, ::2] = torch.where(known, paired, IGNORE)
    distinct = (~known).cumsum(1)
    guess = _most_frequent_before(paired, KEYS).repeat_interleave(2, 1)
    return Rows(inputs, targets, distinct.repeat_interleave(2, 1), guess)


def many_pairs(rows: int, size: int, generator: torch.Generator) -> Rows:
    """`size` pairs of a key and a value, no key twice, then all keys in another order: the value of each."""
    keys = torch.rand(rows, MANY_KEYS, generator=generator).argsort(1)[:, :size]
    values = torch.randint(MANY_KEYS, (rows, size), generator=generator)
    pairs = torch.stack((keys, MANY_KEYS + values), 2).flatten(1)
    asked = torch.rand(rows, size, generator=generator).argsort(1)
    inputs = torch.cat((pairs, keys.gather(1, asked)), 1)
    targets = torch.cat((torch.full_like(pairs, IGNORE), values.gather(1, asked)), 1)
    guess = _most_frequent_before(F.pad(values, (0, 1)), MANY_KEYS)[:, -1:].expand_as(inputs)
    return Rows(inputs, targets, torch.full_like(inputs, size), guess)


def induction(rows: int, size: int, generator: torch.Generator) -> Rows:
    """Symbols with one mark among them, and the mark again at the end: the symbol that followed it the first time."""
    inputs = torch.randint(SYMBOLS, (rows, size), generator=generator)
    mark = torch.randint(size - 2, (rows,), generator=generator)
    row = torch.arange(rows)
    inputs[row, mark] = SYMBOLS
    inputs[:, -1] = SYMBOLS
    targets = torch.full_like(inputs, IGNORE)
    targets[:, -1] = inputs[row, mark + 1]
    return Rows(inputs, targets, torch.full_like(inputs, size))


def duplicate(rows: int, size: int, generator: torch.Generator) -> Rows:
    """Bits and a mark; then the bits again."""
    return _written(rows, size, generator, lambda bits: bits)


def reverse(rows: int, size: int, generator: torch.Generator) -> Rows:
    """Bits and a mark; then the bits from the last to the first."""
    return _written(rows, size, generator, lambda bits: bits.flip(1))


def _written(rows: int, size: int, generator: torch.Generator, answer: Callable[[Tensor], Tensor]) -> Rows:
    """What is asked for stands at the mark and at blanks after it: no answer is read back."""
    bits = torch.randint(2, (rows, size), generator=generator)
    inputs = torch.cat((bits, torch.full((rows, 1), 2), torch.full((rows, size - 1), 3)), 1)
    targets = torch.cat((torch.full_like(bits, IGNORE), answer(bits)), 1)
    return Rows(inputs, targets, torch.full_like(inputs, size))


def _most_frequent_before(values: Tensor, kinds: int) -> Tensor:
    """At each place, the most frequent of the values before it; (B, N)"""
    seen = F.one_hot(values, kinds)
    return (seen.cumsum(1) - seen).argmax(2)


def _lengths(inputs: Tensor) -> Tensor:
    return torch.arange(1, inputs.size(1) + 1).expand(inputs.shape)


_UP_TO_40 = tuple(range(1, 41))  # parity and arithmetic: lengths in training
_LONG = (10, 20, 30, 40, 60, 80, 120, 160, 200, 256)  # parity and arithmetic: ranges of lengths
_SHORT = tuple(range(1, 21))  # copying and reversal: lengths of the strings in training
_STRINGS = (4, 8, 12, 16, 20, 24, 32, 48, 64)

PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("parity", ("Parity", "奇偶校验"), parity, 2, 2, _UP_TO_40, (256,), 40, (41, 256), _LONG),
        Problem("arithmetic", ("Modular arithmetic", "模运算"), modular, MODULUS + 2, MODULUS, _UP_TO_40[::2], (255,),
                40, (41, 256), _LONG),
        Problem("recall", ("Associative recall", "联想回忆"), recall, 2 * KEYS, KEYS, (40,), (40,), KEYS, (1, KEYS),
                (2, 4, 6, 8, 10), "pairs so far"),
        Problem("many_pairs", ("Recall of many pairs", "多对联想回忆"), many_pairs, 2 * MANY_KEYS, MANY_KEYS,
                (4, 8, 16, 32), (4, 8, 16, 32), 32, (32, 32), (4, 8, 16, 32), "pairs"),
        Problem("induction", ("Induction", "归纳"), induction, SYMBOLS + 1, SYMBOLS, (40,), (40,), 40, (40, 40), (40,),
                batches=2),
        Problem("duplicate", ("Copying", "复制"), duplicate, 4, 2, _SHORT, _STRINGS, 20, (21, 64), _STRINGS),
        Problem("reverse", ("Reversal", "反转"), reverse, 4, 2, _SHORT, _STRINGS, 20, (21, 64), _STRINGS),
    )
}  # fmt: skip
