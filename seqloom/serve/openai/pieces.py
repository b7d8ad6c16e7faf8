"""From the events of a model process to those of the protocol: log-probabilities, usage, several prompts as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from seqloom.core.rows import Json
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.faults import Refused


async def merged(exchanges: Sequence[Exchange], n: int) -> AsyncIterator[Json]:
    """Their events as they come; the continuations of prompt p are numbered from p * n on. The last is the usage."""
    queue: asyncio.Queue[Json | Exception | None] = asyncio.Queue(64)
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

    async def follow(number: int, exchange: Exchange) -> None:
        try:
            async for event in exchange:
                await queue.put(event | ({"index": number * n + event["index"]} if "index" in event else {}))
            for name in ("prompt_tokens", "completion_tokens"):
                usage[name] += int(exchange.done.get(name) or 0)
            await queue.put(None)
        except Exception as error:
            await queue.put(error)

    tasks = [asyncio.create_task(follow(number, exchange)) for number, exchange in enumerate(exchanges)]
    try:
        left = len(tasks)
        while left:
            event = await queue.get()
            if isinstance(event, Exception):
                raise event
            left -= event is None
            if event is not None:
                yield checked(event)
    finally:
        for task in tasks:
            task.cancel()
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    yield {"usage": usage}


def checked(event: Json) -> Json:
    """The protocol knows no aborted continuation: it is an error."""
    if event.get("end") == "abort":
        raise Refused(503, "aborted before the end", code="aborted", wait=1)
    return event


class Text:
    """A continuation as it grows, with its log-probabilities in the form of completions."""

    def __init__(self) -> None:
        self.text, self.end = "", "length"
        self.tokens: list[Json] = []
        self._offset = 0

    def add(self, event: Json) -> None:
        self.text += event.get("text", "")
        self.end = event.get("end", self.end)
        if event.get("token"):
            self.tokens.append(event["token"])

    def take(self) -> Json | None:
        """The log-probabilities since the last call."""
        tokens, self.tokens = self.tokens, []
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token["text"])
        found = {
            "tokens": [token["text"] for token in tokens],
            "token_logprobs": [token.get("logprob") for token in tokens],
            "top_logprobs": [dict(map(tuple, token["top"])) if token.get("top") else None for token in tokens],
            "text_offset": offsets,
        }
        return found if tokens else None


def chat_logprobs(tokens: Sequence[Json]) -> Json:
    return {"content": [_one(t["text"], t["logprob"]) | {"top_logprobs": _top(t)} for t in tokens], "refusal": None}


def _top(token: Json) -> list[Json]:
    return [_one(text, logprob) for text, logprob in token.get("top") or ()]


def _one(text: str, logprob: float | None) -> Json:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}
