"""One request for text: from the tokens that the batch writes to the events that the client gets.

What may be the beginning of a stop string, or part of a character, is held back, as in `Run.write`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.decode.chat import chat_ids
from seqloom.decode.drawing import Scored
from seqloom.decode.pick import Choice
from seqloom.decode.rows import Prompted, Request, Token
from seqloom.runs.run import Run, cut_at

MOST_NEW, MOST_ROWS, MOST_TOP = 1_000_000, 8, 20


class Writing:
    def __init__(self, run: Run, asked: Json) -> None:
        self.tokenizer, self.id, self.started = run.tokenizer, asked["id"], time.perf_counter()
        self.request = make_request(run, asked)
        self.stop = [text for text in asked.get("stop") or [] if text]
        self.echo = bool(asked.get("echo"))
        self.written = 0
        self.texts = [_Text(run.tokenizer.decoder(), self.stop) for _ in range(self.request.count)]

    @property
    def over(self) -> bool:
        return all(text.over for text in self.texts)

    def begin(self, event: Prompted) -> Iterator[Json]:
        yield self._event(started={"prompt_tokens": len(self.request.prompt)})
        for index in range(self.request.count if self.echo else 0):
            yield from self._echoed(index, event.scored)
        if self.request.max_new == 0:
            for index in range(self.request.count):
                yield self._end(index, "length")
            yield self.done()

    def take(self, event: Token) -> Iterator[Json]:
        """The events of one more token. The continuation may be over with it, by a stop string."""
        text = self.texts[event.index]
        if text.over:
            return
        self.written += 1
        end = event.end
        new = text.flush() if end == "stop" else text.push(event.id, last=end == "length")
        if text.stopped:
            end = "stop"
        found = self._event(index=event.index, text=new)
        scored = event.scored if event.end != "stop" else None  # the end of a text is not part of it
        if scored is not None:
            found["token"] = self._token(event.id, scored)
        if new or scored is not None or end is None:
            yield found
        if end is not None:
            yield self._end(event.index, end)
            if self.over:
                yield self.done()

    def abort(self) -> Iterator[Json]:
        for index, text in enumerate(self.texts):
            if not text.over:
                yield self._end(index, "abort")
        yield self.done()

    def done(self) -> Json:
        facts = {
            "prompt_tokens": len(self.request.prompt),
            "completion_tokens": self.written,
            "seconds": round(time.perf_counter() - self.started, 6),
        }
        return self._event(done=facts)

    def _event(self, **facts: Any) -> Json:
        return {"id": self.id, **facts}

    def _end(self, index: int, how: str) -> Json:
        self.texts[index].over = True
        return self._event(index=index, end=how)

    def _echoed(self, index: int, scored: Sequence[Scored | None] | None) -> Iterator[Json]:
        decoder = self.tokenizer.decoder()
        if scored is None:
            text = "".join([decoder.push(int(id)) for id in self.request.prompt]) + decoder.flush()
            yield self._event(index=index, text=text, prompt=True)
            return
        for place, (id, one) in enumerate(zip(self.request.prompt, scored, strict=True)):
            text = decoder.push(int(id)) + (decoder.flush() if place == len(scored) - 1 else "")
            yield self._event(index=index, text=text, token=self._token(int(id), one), prompt=True)

    def _token(self, id: int, scored: Scored | None) -> Json:
        top = [] if scored is None else [[self.tokenizer.name(other), log] for other, log in scored.top]
        return {
            "id": id,
            "text": self.tokenizer.name(id),
            "logprob": None if scored is None else scored.logprob,
            "top": top,
        }


class _Text:
    """What one continuation has said, and how much of that was handed over."""

    def __init__(self, decoder: Any, stop: Sequence[str]) -> None:
        self.decoder, self.stop = decoder, stop
        self.held = max((len(text) for text in stop), default=1) - 1  # characters that may begin a stop string
        self.pending = ""
        self.over = self.stopped = False

    def push(self, id: int, last: bool) -> str:
        self.pending += self.decoder.push(id)
        if last:
            return self.flush()
        cut = cut_at(self.pending, self.stop)
        if cut != self.pending:
            self.stopped, self.pending = True, ""
            return cut
        ready = max(0, len(self.pending) - self.held)
        new, self.pending = self.pending[:ready], self.pending[ready:]
        return new

    def flush(self) -> str:
        whole = self.pending + self.decoder.flush()
        new, self.pending = cut_at(whole, self.stop), ""
        self.stopped = self.stopped or new != whole
        return new


def make_request(run: Run, asked: Json) -> Request:
    ids, chat = _ids(run, asked)
    _check("max_new", asked.get("max_new", 200), 0, MOST_NEW)
    _check("n", asked.get("n", 1), 1, MOST_ROWS)
    if asked.get("logprobs") is not None:
        _check("logprobs", asked["logprobs"], 0, MOST_TOP)
    choose = Choice(
        temperature=asked.get("temperature", 0.8), top_k=asked.get("top_k") or 0, top_p=asked.get("top_p") or 1.0
    )
    return Request(
        prompt=ids, max_new=asked.get("max_new", 200), choose=choose, seed=asked.get("seed"), count=asked.get("n", 1),
        ends=frozenset(run.ends(chat)), logprobs=asked.get("logprobs"), echo=bool(asked.get("echo")),
    )  # fmt: skip


def _ids(run: Run, asked: Json) -> tuple[list[int], bool]:
    """The prompt as ids, and whether it is a chat."""
    if asked.get("messages") is not None:
        return chat_ids(run.tokenizer, asked["messages"]), True
    if asked.get("ids") is not None:
        ids = [int(id) for id in asked["ids"]]
        size = run.tokenizer.size
        if not ids or not all(0 <= id < size for id in ids):
            raise UserError(f"ids: give at least one token, from 0 to {size - 1}")
        return ids, False
    return run.prompt_ids(str(asked.get("prompt") or "")), False


def _check(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name}: must be a whole number from {least} to {most:,}")
