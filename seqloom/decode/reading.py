"""Prompts that are read together, piece by piece, while others are written (batcher.py).

A piece is as long as what is left of the shortest prompt: then nothing is padded, unless little is left of it. Prompts
that have been read leave the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, count_rows, select_rows
from seqloom.decode.drawing import Scored, scores
from seqloom.decode.rows import Row

_SHORT = 8  # tokens: shorter pieces cost about as much


class Text:
    """What the given rows are to read: a prompt, or the context of a row."""

    def __init__(self, rows: list[Row], new: bool = False, alone: bool = False) -> None:
        self.rows, self.new, self.key = rows, new, rows[0].key
        self.ids = rows[0].context
        echo = new and rows[0].request.echo and rows[0].logprobs is not None
        self.alone = alone or echo
        self.scored: list[Scored | None] | None = [None] * (rows[0].skipped + 1) if echo else None

    @property
    def live(self) -> list[Row]:
        return [row for row in self.rows if not row.over]


class Reading:
    """Texts of which all have been read equally far."""

    def __init__(self, texts: list[Text]) -> None:
        self.texts, self.read = texts, 0
        self.state: State = None

    @property
    def rows(self) -> int:
        return sum(len(text.live) for text in self.texts)

    def advance(self, model: SequenceModel, most: int) -> tuple[list[Text], Tensor, State]:
        """Read about so many more tokens in all: the texts that are read now, what is predicted after them, (B, V),
        and their state."""
        shortest, longest = (fn(len(text.ids) for text in self.texts) - self.read for fn in (min, max))
        size = max(1, min(max(shortest, _SHORT), longest, most // len(self.texts)))
        pieces = [text.ids[self.read : self.read + size] for text in self.texts]
        if size > shortest:
            inputs, real = (t.to(model.device) for t in pad([torch.tensor(piece) for piece in pieces]))
            logits, state = model.follow(inputs, self.state, real)
        else:
            inputs = torch.tensor(pieces, device=model.device)
            logits, state = self._follow(model, inputs)
        self.read += size
        done = [n for n, text in enumerate(self.texts) if len(text.ids) <= self.read]
        rest = [n for n, text in enumerate(self.texts) if len(text.ids) > self.read]
        found = [self.texts[n] for n in done]
        self.texts, self.state = [self.texts[n] for n in rest], choose_rows(state, rest) if rest else None
        return found, logits[torch.tensor(done, dtype=torch.long)], choose_rows(state, done) if done else None

    def _follow(self, model: SequenceModel, inputs: Tensor) -> tuple[Tensor, State]:
        text = self.texts[0]
        if text.scored is None:
            return model.follow(inputs, self.state)
        logits, state = model(inputs, self.state)
        after = text.ids[self.read + 1 : self.read + logits.size(1) + 1]
        if after:
            text.scored += scores(logits[0, : len(after)], after, [text.rows[0].logprobs or 0] * len(after))
        return logits[:, -1], state


def choose_rows(state: State, rows: Sequence[int]) -> State:
    """These rows; no copy if that is all of them."""
    return state if list(rows) == list(range(count_rows(state))) else select_rows(state, torch.tensor(rows))
