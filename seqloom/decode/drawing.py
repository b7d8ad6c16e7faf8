"""Drawing the next token of many rows at once, each with its own choice and its own random numbers.

`torch.multinomial` draws from p by argmax(p / e), e exponentially distributed: with the e of each row from a generator
of its own, a row in a batch gets the token that it gets alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from seqloom.decode.pick import Choice, seeded


class Noise:
    """The random numbers of all continuations of one prompt: at every step one vector for each, drawn together.

    Continuations may be some steps apart; what is behind the last of them is forgotten.
    """

    def __init__(self, seed: int | None, count: int, device: torch.device) -> None:
        self.generator = seeded(seed, device) or torch.Generator(device)
        if seed is None:
            self.generator.seed()
        self.drawn, self.kept = 0, dict[int, Tensor]()
        self.steps: list[float] = [0.0] * count

    def fill(self, out: Tensor, index: int, step: int) -> None:
        """The numbers of a continuation at a step: (V,)"""
        if len(self.steps) == 1:
            out.exponential_(1, generator=self.generator)
            return
        while self.drawn <= step:
            self.kept[self.drawn] = out.new_empty(len(self.steps), len(out)).exponential_(1, generator=self.generator)
            self.drawn += 1
        out.copy_(self.kept[step][index])
        self.steps[index] = step + 1
        self._forget()

    def end(self, index: int) -> None:
        """This continuation needs no more of them."""
        self.steps[index] = math.inf
        self._forget()

    def _forget(self) -> None:
        for step in [step for step in self.kept if step < min(self.steps)]:
            del self.kept[step]


class Drawer(Protocol):
    """A row that a token is drawn for."""

    choose: Choice
    noise: Noise
    index: int  # of the continuation
    logprobs: int | None  # how many alternatives to a token are wanted; None: no log-probabilities

    @property
    def step(self) -> int:
        """Tokens drawn so far."""


class Scored(NamedTuple):
    """Log-probabilities by the model, whatever the choice."""

    logprob: float
    top: list[tuple[int, float]]  # the most likely tokens


def draw(rows: Sequence[Drawer], logits: Tensor) -> list[int]:
    """The next token of every row, from (B, V)."""
    together: dict[Choice, list[int]] = {}
    for n, row in enumerate(rows):
        together.setdefault(row.choose, []).append(n)
    if len(together) == 1:
        return _draw(rows, logits).tolist()
    found = [0] * len(rows)
    for places in together.values():
        tokens = _draw([rows[n] for n in places], logits[torch.tensor(places, device=logits.device)])
        for n, token in zip(places, tokens.tolist(), strict=True):
            found[n] = token
    return found


def _draw(rows: Sequence[Drawer], logits: Tensor) -> Tensor:
    """Of rows with the same choice."""
    choose = rows[0].choose
    if choose.greedy:
        return logits.argmax(-1)
    probabilities = choose.probabilities(logits)
    noise = torch.empty_like(probabilities)
    for row, out in zip(rows, noise, strict=True):
        row.noise.fill(out, row.index, row.step)
    return (probabilities / noise).argmax(-1)


def score(rows: Sequence[Drawer], logits: Tensor, tokens: Sequence[int]) -> list[Scored | None]:
    """Of the tokens drawn, for the rows that want it."""
    places = [n for n, row in enumerate(rows) if row.logprobs is not None]
    found: list[Scored | None] = [None] * len(rows)
    if places:
        wanted = [rows[n].logprobs or 0 for n in places]
        chosen = logits[torch.tensor(places, device=logits.device)]
        for n, scored in zip(places, scores(chosen, [tokens[n] for n in places], wanted), strict=True):
            found[n] = scored
    return found


def scores(logits: Tensor, tokens: Sequence[int], most: Sequence[int]) -> list[Scored]:
    """Of one token per row of (B, V), with up to `most` alternatives."""
    logs = logits.float().log_softmax(-1)
    own = logs.gather(1, torch.tensor(tokens, device=logs.device)[:, None])[:, 0].tolist()
    values, places = logs.topk(min(max(most), logs.size(1)))
    tops = [list(zip(*pair, strict=True)) for pair in zip(places.tolist(), values.tolist(), strict=True)]
    return [Scored(log, top[:count]) for log, top, count in zip(own, tops, most, strict=True)]
