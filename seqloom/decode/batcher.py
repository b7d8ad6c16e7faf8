"""Continuous batching: rows of any causal model are continued together, and join and leave between steps.

A step reads a piece of the prompts that wait, then writes one token of every row. What becomes of a row does not
depend on the others: its tokens are those of `stream` with its prompt alone. Each row has a slot of one common state;
how rows come into it and go is the model's matter (core/slots.py).

A prompt is read to its last token, whose prediction is the first token drawn; one prompt's continuations read it once.
A row whose context is full leaves, and its last half is read like a new prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, count_rows, select_rows
from seqloom.decode.drawing import Scored, draw, score, scores
from seqloom.decode.rows import Event, Failed, Prompted, Request, Row, Token, rows_of

PIECE = 256  # tokens of prompts read between two steps: some ten milliseconds
_UNDISTURBED = 4  # times as many while no row waits for its next token


class Batcher:
    def __init__(self, model: SequenceModel, rows: int = 32, piece: int = PIECE) -> None:
        self.model, self.most, self.piece = model, rows, piece
        self.queue: deque[_Text] = deque()
        self.reading: _Reading | None = None
        self.slots: list[Row | None] = []  # as in the state
        self.state: State = None
        self.steps = self.tokens = 0  # so far

    def add(self, key: Hashable, request: Request) -> None:
        rows = rows_of(key, request, self.model.limit, self.model.device)
        self.queue.append(_Text(rows, new=True))

    @torch.inference_mode()
    def cancel(self, key: Hashable) -> None:
        """The rows of this request end without another word."""
        for row in self._rows():
            if row.key == key:
                row.close()
        self.queue = deque(text for text in self.queue if text.live)
        if self.reading is not None and not any(text.live for text in self.reading.texts):
            self.reading = None
        self._vacate()

    @property
    def busy(self) -> bool:
        return bool(self.queue or self.reading or self.slots)

    @property
    def active(self) -> int:
        """Rows that are written or read."""
        read = sum(len(text.live) for text in self.reading.texts) if self.reading else 0
        return read + sum(row is not None for row in self.slots)

    @torch.inference_mode()
    def step(self) -> list[Event]:
        events = self._read()
        self._refill()
        if self.slots:
            events += self._write()
        self.steps += 1
        return events

    def _rows(self) -> list[Row]:
        texts = [*self.queue, *(self.reading.texts if self.reading else ())]
        return [row for row in self.slots if row is not None] + [row for text in texts for row in text.rows]

    def _refill(self) -> None:
        """Rows with a full context are read anew, before others."""
        full = [n for n, row in enumerate(self.slots) if row is not None and row.full()]
        if full:
            self.queue.extendleft(_Text([row]) for n in reversed(full) if (row := self.slots[n]))
            self._vacate(full)

    def _read(self) -> list[Event]:
        """One piece of the prompts that come next."""
        budget = self.piece if self.slots else self.piece * _UNDISTURBED
        if self.reading is None:
            self.reading = self._gather(budget)
        if self.reading is None:
            return []
        reading = self.reading
        try:
            logits = reading.advance(self.model, budget)
        except Exception as error:
            return self._give_up(reading, error)
        if logits is None:
            return []
        self.reading = None
        return self._begin(reading, logits)

    def _gather(self, budget: int) -> _Reading | None:
        """The prompts that come next: one, or several whose tokens, padded, are within the budget."""
        free, texts, longest = self.most - self.active, list[_Text](), 0
        while self.queue:
            text = self.queue[0]
            longest = max(longest, len(text.ids))
            if texts and (text.alone or texts[0].alone or longest * (len(texts) + 1) > budget):
                break
            if len(text.rows) > free and (texts or self.slots):
                break
            free -= len(text.rows)
            texts.append(self.queue.popleft())
        return _Reading(texts) if texts else None

    def _begin(self, reading: _Reading, logits: Tensor) -> list[Event]:
        """The first token of all rows that were read; those that go on join the others."""
        first = [text for text in reading.texts if text.new and text.live]
        events: list[Event] = [Prompted(text.key, text.scored) for text in first]
        for row in (row for text in first for row in text.live if row.request.max_new == 0):
            row.close()
        rows = [row for text in reading.texts for row in text.live]
        if not rows:
            return events
        index = torch.tensor([n for n, text in enumerate(reading.texts) for _ in text.live])
        events += self._take(rows, logits[index.to(logits.device)])
        going = [n for n, row in enumerate(rows) if not row.over]
        if going:
            self._join([rows[n] for n in going], _select(reading.state, index[going]))
        return events

    def _join(self, rows: Sequence[Row], state: State) -> None:
        vacant = [n for n, row in enumerate(self.slots) if row is None]
        slots = (vacant + list(range(len(self.slots), len(self.slots) + len(rows))))[: len(rows)]
        self.state = self.model.slots.join(self.state, slots, state)
        self.slots += [None] * (max(slots) + 1 - len(self.slots))
        for slot, row in zip(slots, rows, strict=True):
            self.slots[slot] = row

    def _write(self) -> list[Event]:
        """One token of every row."""
        last = torch.tensor([row.ids[-1] if row else 0 for row in self.slots], device=self.model.device)
        live = [n for n, row in enumerate(self.slots) if row is not None]
        try:
            logits, self.state = self.model(last[:, None], self.state)
        except Exception:
            return self._separate()
        logits = logits[:, -1]
        if len(live) < len(self.slots):
            logits = logits[torch.tensor(live, device=logits.device)]
        events = self._take([row for row in self.slots if row is not None], logits)
        self._vacate([n for n in live if (row := self.slots[n]) and row.over])
        return events

    def _take(self, rows: Sequence[Row], logits: Tensor) -> list[Event]:
        """Draw the next token of each row."""
        tokens = draw(rows, logits)
        scored = score(rows, logits, tokens)
        self.tokens += len(tokens)
        drawn = zip(rows, tokens, scored, strict=True)
        return [Token(row.key, row.index, token, row.take(token), one) for row, token, one in drawn]

    def _vacate(self, slots: Sequence[int] = ()) -> None:
        """These slots and those of rows that are over become vacant; when many are, the others close ranks."""
        for slot in slots:
            self.slots[slot] = None
        self.slots = [None if row is None or row.over else row for row in self.slots]
        live = sum(row is not None for row in self.slots)
        if not live:
            self.slots, self.state = [], None
        elif live == len(self.slots):
            return
        elif len(self.slots) - live > live // 4:
            self._pack(live)
        else:
            vacant = [n for n, row in enumerate(self.slots) if row is None]
            self.state = self.model.slots.leave(self.state, vacant)

    def _pack(self, live: int) -> None:
        later = [n for n in range(live, len(self.slots)) if self.slots[n] is not None]
        order = [n if self.slots[n] is not None else later.pop(0) for n in range(live)]
        self.state = self.model.slots.pack(self.state, order)
        self.slots = [self.slots[n] for n in order]

    def _give_up(self, reading: _Reading, error: Exception) -> list[Event]:
        """Of several prompts that could not be read, each is tried alone."""
        self.reading = None
        if len(reading.texts) > 1:
            self.queue.extendleft(_Text(text.rows, text.new, alone=True) for text in reversed(reading.texts))
            return []
        for row in reading.texts[0].rows:
            self.cancel(row.key)
        return [Failed(reading.texts[0].key, error)]

    def _separate(self) -> list[Event]:
        """A step failed, maybe for a single row: each is read alone, and fails alone if it must."""
        self.queue.extendleft(_Text([row], alone=True) for row in reversed(self.slots) if row is not None)
        self.slots, self.state = [], None
        return []


class _Text:
    """What the given rows are to read: a prompt, or the context of a row."""

    def __init__(self, rows: list[Row], new: bool = False, alone: bool = False) -> None:
        self.rows, self.new, self.key = rows, new, rows[0].key
        self.ids = rows[0].context
        self.echo = rows[0].request if new and rows[0].request.echo and rows[0].logprobs is not None else None
        self.alone = alone or self.echo is not None
        self.scored: list[Scored | None] | None = [None] * (rows[0].skipped + 1) if self.echo else None

    @property
    def live(self) -> list[Row]:
        return [row for row in self.rows if not row.over]


class _Reading:
    """Prompts that are read together, piece by piece."""

    def __init__(self, texts: list[_Text]) -> None:
        self.texts, self.read = texts, 0
        self.state: State = None

    def advance(self, model: SequenceModel, most: int) -> Tensor | None:
        """Read at most so many more tokens; the predictions after the last one (B, V) once all are read."""
        if len(self.texts) > 1:
            inputs, mask = pad([torch.tensor(text.ids) for text in self.texts])
            inputs, real = inputs.to(model.device), None if bool(mask.all()) else mask.to(model.device)
            logits, self.state = model.follow(inputs, None, real)
            return logits
        text = self.texts[0]
        ids = text.ids[self.read : self.read + most]
        inputs = torch.tensor([ids], device=model.device)
        if text.scored is None:
            logits, self.state = model.follow(inputs, self.state)
        else:
            every, self.state = model(inputs, self.state)
            logits = every[:, -1]
            self._score(text, every[0])
        self.read += len(ids)
        return logits if self.read == len(text.ids) else None

    def _score(self, text: _Text, logits: Tensor) -> None:
        after = text.ids[self.read + 1 : self.read + len(logits) + 1]
        if after and text.scored is not None:
            most = [text.rows[0].logprobs or 0] * len(after)
            text.scored += scores(logits[: len(after)], after, most)


def _select(state: State, rows: Tensor) -> State:
    """These rows; no copy if that is all of them."""
    return state if rows.tolist() == list(range(count_rows(state))) else select_rows(state, rows)
