"""The routes under /v1."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import AsyncIterator, Sequence
from secrets import token_hex
from typing import Any

from seqloom.core.rows import Json
from seqloom.serve.answers import add_route, answer, asked, body_of, stream, version_of
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.children.models import Served
from seqloom.serve.direct.models import check_new, check_verb, event_with
from seqloom.serve.faults import Refused
from seqloom.serve.openai.pieces import Text, chat_logprobs, merged
from seqloom.serve.openai.requests import Chat, Completion, Embedding, Sampling
from seqloom.serve.state import State

_SHORT, _LONG = 16, 1024  # new tokens that a completion and a chat get, if the request says nothing


def router(state: State) -> Any:
    from fastapi import APIRouter

    routes, api = APIRouter(), _Api(state)
    missing = (404,)
    add_route(routes, "GET", "/v1/models", api.models)
    add_route(routes, "GET", "/v1/models/{name}", api.model, errors=missing)
    add_route(routes, "POST", "/v1/completions", api.completions, Completion, errors=missing)
    add_route(routes, "POST", "/v1/chat/completions", api.chat, Chat, errors=missing)
    add_route(routes, "POST", "/v1/embeddings", api.embeddings, Embedding, errors=missing)
    return routes


class _Api:
    def __init__(self, state: State) -> None:
        self.state, self._started = state, int(time.time())

    def _about(self, served: Served) -> Json:
        return {"id": served.name, "object": "model", "created": self._started, "owned_by": "seqloom"}

    async def models(self, request: Any) -> Any:
        return answer({"object": "list", "data": [self._about(each) for each in self.state.models.of("run")]})

    async def model(self, request: Any) -> Any:
        return answer(self._about(self.state.models.find(request.path_params["name"])))

    async def completions(self, request: Any) -> Any:
        body = body_of(request, Completion)
        served = self._generator(body)
        most = _SHORT if body.max_tokens is None else body.max_tokens
        check_new(served, most, "max_tokens", self.state.limits)
        how = body.how() | {"op": "generate", "max_new": most, "logprobs": body.logprobs, "echo": bool(body.echo)}
        exchanges = [await asked(request, served, how | prompt) for prompt in body.prompts()]
        form = _Form("cmpl", "text_completion", exchanges[0], body)
        events = merged(exchanges, body.n or 1)
        if body.stream:
            return await stream(form.completion_chunks(events), version_of(exchanges[0]))
        texts, usage = await _whole(events, len(exchanges) * (body.n or 1))
        choices = [
            {"index": number, "text": text.text, "logprobs": text.take(), "finish_reason": text.end}
            for number, text in enumerate(texts)
        ]
        return answer(form.head() | {"choices": choices, "usage": usage}, headers=version_of(exchanges[0]))

    async def chat(self, request: Any) -> Any:
        body = body_of(request, Chat)
        served = self._generator(body)
        if not served.facts.get("chat"):
            raise Refused(400, "this model has no chat template; use /v1/completions", param="model")
        most = min(_LONG, served.facts.get("limit") or _LONG) if body.limit is None else body.limit
        check_new(served, most, "max_completion_tokens", self.state.limits)
        top = (body.top_logprobs or 0) if body.logprobs else None
        messages = [message.plain() for message in body.messages]
        how = body.how() | {"op": "generate", "max_new": most, "logprobs": top, "echo": False, "messages": messages}
        exchange = await asked(request, served, how)
        form = _Form("chatcmpl", "chat.completion", exchange, body)
        if body.stream:
            return await stream(form.chat_chunks(merged([exchange], body.n or 1)), version_of(exchange))
        texts, usage = await _whole(merged([exchange], body.n or 1), body.n or 1)
        choices = [
            {
                "index": number,
                "message": {"role": "assistant", "content": text.text, "refusal": None},
                "logprobs": chat_logprobs(text.tokens) if body.logprobs else None,
                "finish_reason": text.end,
            }
            for number, text in enumerate(texts)
        ]
        return answer(form.head() | {"choices": choices, "usage": usage}, headers=version_of(exchange))

    async def embeddings(self, request: Any) -> Any:
        body = body_of(request, Embedding)
        served = self.state.models.find(body.model)
        if not served.facts.get("embeds"):
            raise Refused(400, "this model has no embeddings", param="model")
        texts = [body.input] if isinstance(body.input, str) else body.input
        exchange = await asked(request, served, {"op": "embed", "texts": texts})
        found = await event_with("vectors", exchange)
        vectors = found["vectors"]
        if body.dimensions is not None and any(len(vector) != body.dimensions for vector in vectors):
            raise Refused(400, f"dimensions: this model has {len(vectors[0])}; leave it out", param="dimensions")
        packed = body.encoding_format == "base64"
        data = [
            {"object": "embedding", "index": number, "embedding": _packed(vector) if packed else vector}
            for number, vector in enumerate(vectors)
        ]
        tokens = int(found.get("tokens") or 0)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return answer(
            {"object": "list", "data": data, "model": served.name, "usage": usage}, headers=version_of(exchange)
        )

    def _generator(self, body: Sampling) -> Served:
        served = self.state.models.find(body.model)
        check_verb(served, "generate")
        return served


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


async def _whole(events: AsyncIterator[Json], count: int) -> tuple[list[Text], Json]:
    texts = [Text() for _ in range(count)]
    usage: Json = {}
    async for event in events:
        usage = event.get("usage", usage)
        if "index" in event:
            texts[event["index"]].add(event)
    return texts, usage


class _Form:
    """The frame around the choices."""

    def __init__(self, prefix: str, kind: str, exchange: Exchange, body: Sampling) -> None:
        self._kind, self._usage = kind, body.usage
        self._head: Json = {"id": f"{prefix}-{token_hex(12)}", "created": int(time.time()), "model": body.model}
        self._head |= {"system_fingerprint": exchange.version or None}

    def head(self, kind: str = "") -> Json:
        return self._head | {"object": kind or self._kind}

    async def completion_chunks(self, events: AsyncIterator[Json]) -> AsyncIterator[Json]:
        texts: dict[int, Text] = {}
        async for event in events:
            if "index" in event:
                text = texts.setdefault(event["index"], Text())
                text.add(event)
                choice = {"text": event.get("text", ""), "index": event["index"], "logprobs": text.take()}
                yield self._chunk([choice | {"finish_reason": event.get("end")}], "text_completion")
            elif "usage" in event and self._usage:
                yield self._chunk([], "text_completion") | {"usage": event["usage"]}

    async def chat_chunks(self, events: AsyncIterator[Json]) -> AsyncIterator[Json]:
        begun: set[int] = set()
        async for event in events:
            if "index" in event:
                index, end = event["index"], event.get("end")
                text = event.get("text", "")
                delta: Json = {"content": text} if text or not end else {}
                if index not in begun:
                    begun.add(index)
                    delta = {"role": "assistant", "content": "", **delta}
                logprobs = chat_logprobs([event["token"]]) if event.get("token") else None
                choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": end}
                yield self._chunk([choice], "chat.completion.chunk")
            elif "usage" in event and self._usage:
                yield self._chunk([], "chat.completion.chunk") | {"usage": event["usage"]}

    def _chunk(self, choices: list[Json], kind: str) -> Json:
        return self.head(kind) | {"choices": choices} | ({"usage": None} if self._usage else {})
