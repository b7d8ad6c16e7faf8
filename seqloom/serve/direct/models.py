"""`/api/server`, and what models and indexes can do, each a call over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.serve.answers import Body, add_route, answer, asked, body_of, page, stream, version_of
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.children.models import Served
from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits
from seqloom.serve.state import State

L = Limits()  # what is declared; what a server was given holds as well, where it is checked


class Message(Body):
    role: Literal["system", "user", "assistant"]
    content: str


class Generate(Body):
    prompt: str | None = None
    ids: list[int] | None = None
    messages: list[Message] | None = Field(None, min_length=1, max_length=L.messages)
    max_new: int = Field(200, ge=1, le=1_000_000)
    temperature: float = Field(0.8, ge=0, le=10)
    top_k: int = Field(0, ge=0, le=L.top_k)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: list[str] = Field([], max_length=L.stops)
    n: int = Field(1, ge=1, le=L.n)
    logprobs: int | None = Field(None, ge=0, le=L.top_logprobs)
    echo: bool = False

    @field_validator("stop")
    @classmethod
    def _stops(cls, value: list[str]) -> list[str]:
        if any(not 0 < len(text) <= L.stop_characters for text in value):
            raise ValueError(f"stop strings have 1 to {L.stop_characters} characters")
        return value

    @field_validator("ids")
    @classmethod
    def _ids(cls, value: list[int] | None) -> list[int] | None:
        if value is not None and any(not 0 <= each < 2**31 for each in value):
            raise ValueError("token ids are not negative and fit 31 bits")
        return value

    @model_validator(mode="after")
    def _one_prompt(self) -> Generate:
        if sum(each is not None for each in (self.prompt, self.ids, self.messages)) != 1:
            raise ValueError("give exactly one of prompt, ids and messages")
        return self


class Predict(Body):
    rows: list[dict[str, JsonValue]] | None = Field(None, min_length=1, max_length=L.rows)
    texts: list[str] | None = Field(None, min_length=1, max_length=L.rows)
    upload: str | None = Field(None, max_length=100)
    options: dict[str, JsonValue] = {}

    @model_validator(mode="after")
    def _one_source(self) -> Predict:
        if sum(each is not None for each in (self.rows, self.texts, self.upload)) != 1:
            raise ValueError("give exactly one of rows, texts and upload")
        return self


class Input(Body):
    text: str | None = None
    row: dict[str, JsonValue] | None = None
    second: str | None = None
    passage: str | None = None
    target: str | None = None
    against: str | None = None
    patch_with: str | None = None


class Explain(Input):
    views: list[str] | None = Field(None, min_length=1, max_length=20)
    page: bool = True


class Embed(Body):
    texts: list[str] = Field(min_length=1, max_length=L.rows)


class Ask(Body):
    question: str = Field(min_length=1, max_length=10_000)
    k: int = Field(8, ge=1, le=100)


def router(state: State) -> Any:
    from fastapi import APIRouter

    routes = APIRouter()
    missing = (404,)
    deeds = _Deeds(state)
    add_route(routes, "GET", "/api/server", deeds.server)
    add_route(routes, "POST", "/api/models/{name}/generate", deeds.generate, Generate, errors=missing)
    add_route(routes, "POST", "/api/models/{name}/predict", deeds.predict, Predict, errors=missing)
    add_route(routes, "POST", "/api/models/{name}/explain", deeds.explain, Explain, errors=missing)
    add_route(routes, "POST", "/api/models/{name}/embed", deeds.embed, Embed, errors=missing)
    add_route(routes, "POST", "/api/indexes/{name}/ask", deeds.ask, Ask, errors=missing)
    add_route(routes, "GET", "/api/pages/{name}", deeds.page, errors=missing, answer="text/html")
    return routes


class _Deeds:
    def __init__(self, state: State) -> None:
        self.state = state

    def served(self, request: Any, kind: str = "run") -> Served:
        return self.state.models.find(request.path_params["name"], kind)

    async def server(self, request: Any) -> Any:
        models = self.state.models
        found = {
            "version": VERSION,
            "models": [each.facts for each in models.of("run")],
            "indexes": [each.facts for each in models.of("index")],
            "limits": self.state.limits.facts(),
            "jobs": self.state.jobs is not None,
        }
        return answer(found)

    async def generate(self, request: Any) -> Any:
        served, body = self.served(request), body_of(request, Generate)
        check_verb(served, "generate")
        check_new(served, body.max_new, "max_new", self.state.limits)
        what = body.model_dump(exclude_none=True) | {"op": "generate", "seed": body.seed, "logprobs": body.logprobs}
        exchange = await asked(request, served, what)
        return await stream(_verbatim(exchange), version_of(exchange))

    async def predict(self, request: Any) -> Any:
        served, body = self.served(request), body_of(request, Predict)
        check_verb(served, "predict")
        columns = served.facts.get("columns") or ["text"]
        if body.upload is not None:
            path = self.state.uploads.path(body.upload) if self.state.uploads is not None else None
            if path is None:
                raise Refused(404, "no such upload", param="upload")
            what: Json = {"op": "predict_file", "path": str(path)}
        else:
            role = next(iter(columns))
            rows = body.rows if body.rows is not None else [{role: text} for text in body.texts or ()]
            what = {"op": "predict", "rows": rows}
        exchange = await asked(request, served, what | {"options": body.options})
        found = await _rows(exchange, self.state.limits)
        return answer({"rows": found, "columns": columns}, headers=version_of(exchange))

    async def explain(self, request: Any) -> Any:
        served, body = self.served(request), body_of(request, Explain)
        given = body.model_dump(exclude={"views", "page"}, exclude_none=True)
        what: Json = {"op": "explain", "input": given, "views": body.views, "page": body.page}
        exchange = await asked(request, served, what)
        event = await event_with("explanation", exchange)
        found = {"explanation": event["explanation"], "page": self._page(event)}
        return answer(found, headers=version_of(exchange))

    async def embed(self, request: Any) -> Any:
        served, body = self.served(request), body_of(request, Embed)
        exchange = await asked(request, served, {"op": "embed", "texts": body.texts})
        event = await event_with("vectors", exchange)
        return answer({"vectors": event["vectors"], "tokens": event.get("tokens")}, headers=version_of(exchange))

    async def ask(self, request: Any) -> Any:
        served, body = self.served(request, "index"), body_of(request, Ask)
        exchange = await asked(request, served, {"op": "ask", "question": body.question, "k": body.k})
        event = await event_with("reply", exchange)
        return answer({"reply": event["reply"], "page": self._page(event)}, headers=version_of(exchange))

    def _page(self, event: Json) -> str | None:
        return self.state.pages.add(event["html"]) if event.get("html") else None

    async def page(self, request: Any) -> Any:
        return page(self.state.pages.find(request.path_params["name"]))


def check_verb(served: Served, verb: str) -> None:
    own = served.facts.get("verb", verb)
    if own != verb:
        raise Refused(400, f"this model does not {verb}; it can {own}", param="model")


def check_new(served: Served, count: int, param: str, limits: Limits) -> None:
    """At most what the model can hold; of a model without an end, what the server allows."""
    most = served.facts.get("limit") or limits.new_tokens
    if count > most:
        raise Refused(400, f"{param}: must be at most {most:,} for this model", param=param)


async def _verbatim(exchange: Exchange) -> AsyncIterator[Json]:
    async for event in exchange:
        yield event
    yield {"id": exchange.id, "done": exchange.done}


async def _rows(exchange: Exchange, limits: Limits) -> list[Json]:
    """A file of 200 MB may have more predictions than this process should hold."""
    found: list[Json] = []
    async for event in exchange:
        found += event.get("rows", ())
        if exchange.size > limits.predictions:
            raise Refused(413, f"predictions of more than {limits.predictions:,} bytes; send fewer rows at once")
    return found


async def event_with(name: str, exchange: Exchange) -> Json:
    """The event that holds this, once the request is done."""
    found = [event async for event in exchange if name in event]
    if not found:
        raise Refused(500, "the model process gave no answer", code="model_failed")
    return found[0]
