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

from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.decode.drawing import draw, score
from seqloom.decode.reading import Reading, Text, choose_rows
from seqloom.decode.rows import Event, Failed, Prompted, Request, Row, Token, rows_of

PIECE = 256  # tokens of prompts read between two steps: some ten milliseconds
_UNDISTURBED = 4  # times as many while no row waits for its next token
_READINGS = 4  # groups of prompts


class Batcher:
    def __init__(self, model: SequenceModel, rows: int = 32, piece: int = PIECE) -> None:
        self.model, self.most, self.piece = model, rows, piece
        self.queue: deque[Text] = deque()
        self.readings: deque[Reading] = deque()  # they take turns: a long prompt does not keep short ones waiting
        self.slots: list[Row | None] = []  # as in the state
        self.state: State = None
        self.steps = self.tokens = 0  # so far

    def add(self, key: Hashable, request: Request) -> None:
        rows = rows_of(key, request, self.model.limit, self.model.device)
        self.queue.append(Text(rows, new=True))

    @torch.inference_mode()
    def cancel(self, key: Hashable, index: int | None = None) -> None:
        """The rows of this request, or one of them, end without another word."""
        for row in self._rows():
            if row.key == key and index in (None, row.index):
                row.close()
        self.queue = deque(text for text in self.queue if text.live)
        self.readings = deque(reading for reading in self.readings if reading.rows)
        self._vacate()

    @property
    def busy(self) -> bool:
        return bool(self.queue or self.readings or self.slots)

    @property
    def active(self) -> int:
        """Rows that are written or read."""
        return sum(reading.rows for reading in self.readings) + sum(row is not None for row in self.slots)

    @torch.inference_mode()
    def step(self) -> list[Event]:
        events = self._read()
        self._refill()
        if self.slots:
            events += self._write()
        self.steps += 1
        return events

    def _rows(self) -> list[Row]:
        texts = [*self.queue, *(text for reading in self.readings for text in reading.texts)]
        return [row for row in self.slots if row is not None] + [row for text in texts for row in text.rows]

    def _refill(self) -> None:
        """Rows with a full context are read anew, before others."""
        full = [n for n, row in enumerate(self.slots) if row is not None and row.full()]
        if full:
            self.queue.extendleft(Text([row]) for n in reversed(full) if (row := self.slots[n]))
            self._vacate(full)

    def _read(self) -> list[Event]:
        """One piece of the prompts that come next."""
        if len(self.readings) < _READINGS and (texts := self._gather()):
            self.readings.appendleft(Reading(texts))
        if not self.readings:
            return []
        reading = self.readings.popleft()
        texts = list(reading.texts)
        try:
            done, logits, state = reading.advance(self.model, self.piece * (1 if self.slots else _UNDISTURBED))
        except Exception as error:
            return self._give_up(texts, error)
        if reading.rows:
            self.readings.append(reading)
        return self._begin(done, logits, state)

    def _gather(self) -> list[Text]:
        """The prompts that are read next, together."""
        free, texts = self.most - self.active, list[Text]()
        while self.queue and not (texts and (self.queue[0].alone or texts[0].alone)):
            if len(self.queue[0].rows) > free and (texts or self.slots or self.readings):
                break
            texts.append(self.queue.popleft())
            free -= len(texts[-1].rows)
        return texts

    def _begin(self, texts: list[Text], logits: Tensor, state: State) -> list[Event]:
        """The first token of all rows of the texts that were read; those that go on join the others."""
        first = [text for text in texts if text.new and text.live]
        events: list[Event] = [Prompted(text.key, text.scored) for text in first]
        for row in (row for text in first for row in text.live if row.request.max_new == 0):
            row.close()
        rows = [row for text in texts for row in text.live]
        if not rows:
            return events
        index = torch.tensor([n for n, text in enumerate(texts) for _ in text.live])
        events += self._take(rows, logits[index.to(logits.device)])
        going = [n for n, row in enumerate(rows) if not row.over]
        if going:
            self._join([rows[n] for n in going], choose_rows(state, index[going].tolist()))
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

    def _give_up(self, texts: list[Text], error: Exception) -> list[Event]:
        """Of several prompts that could not be read, each is tried alone."""
        if len(texts) > 1:
            self.queue.extendleft(Text(text.rows, text.new, alone=True) for text in reversed(texts) if text.live)
            return []
        self.cancel(texts[0].key)
        for row in texts[0].rows:
            row.close()
        return [Failed(texts[0].key, error)]

    def _separate(self) -> list[Event]:
        """A step failed, maybe for a single row: each is read alone, and fails alone if it must."""
        self.queue.extendleft(Text([row], alone=True) for row in reversed(self.slots) if row is not None)
        self.slots, self.state = [], None
        return []
