"""Routes and answers: each route with its body and its errors declared, each answer as strict JSON or as a stream."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.serve.children.exchange import Exchange
from seqloom.serve.children.models import Served
from seqloom.serve.faults import Refused

EVERYWHERE = (400, 401, 403, 405, 408, 413, 414, 415, 429, 431, 500, 503, 504)  # errors that any route may answer
ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
Handler = Callable[[Any], Awaitable[Any]]


class Body(BaseModel):
    """A body: closed, and without conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


AnyBody = TypeVar("AnyBody", bound=BaseModel)


def add_route(
    router: Any, method: str, path: str, handler: Handler, body: type[BaseModel] | None = None, *,
    errors: tuple[int, ...] = (), answer: str = "application/json",
) -> None:  # fmt: skip
    """`handler` takes the request and reads its body itself, with `body_of`; `errors`: beside those of any route."""
    from fastapi import Request, Response

    async def endpoint(request):  # type: ignore  # the annotations, which FastAPI reads, are given below
        return await handler(request)

    endpoint.__annotations__ = {"request": Request, "return": Response}
    endpoint.__name__ = handler.__name__.strip("_")
    declared: dict[int | str, Json] = {code: error_answer() for code in (*EVERYWHERE, *errors)}
    declared[200] = {"description": "done", "content": {answer: {}}}
    more: Json = {}
    if body is not None:
        schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
        more = {"requestBody": {"required": True, "content": {"application/json": {"schema": flat(schema)}}}}
    router.add_api_route(
        path, endpoint, methods=[method], responses=declared, openapi_extra=more, response_class=Response
    )


def error_answer() -> Json:
    return {"description": "error", "content": {"application/json": {"schema": ERROR}}}


def flat(schema: Json) -> Json:
    """A JSON schema with its definitions put where they are used."""
    known = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return put(known[value["$ref"].rpartition("/")[2]])
        return {key: put(each) for key, each in value.items()}

    found: Json = put(schema)
    return found


def body_of(request: Any, kind: type[AnyBody]) -> AnyBody:
    """The body, which the guard has read, as what the route takes."""
    value = request.scope["state"].get("json")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise refusal(error, kind) from None


def refusal(error: ValidationError, kind: type[BaseModel]) -> Refused:
    first = error.errors(include_input=False, include_url=False)[0]
    place = [part for part in first["loc"] if isinstance(part, str)]
    return mistake(first, place[0] if place and place[0] in kind.model_fields else None)


def mistake(first: Mapping[str, Any], name: str | None) -> Refused:
    """What is wrong with a field of ours or the whole, with nothing of what was sent."""
    if first["type"] == "extra_forbidden":
        return Refused(400, "an unknown field; leave it out", param=name, code="unknown_parameter")
    said = str(first["msg"]) if first["type"] != "value_error" else str(first["ctx"]["error"])
    if not re.match(r"[a-z_]+: ", said):
        said = f"{name or 'body'}: {said[:1].lower()}{said[1:]}"
    return Refused(400, said, param=name)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    from starlette.responses import Response

    return Response(to_json(value), status, headers, "application/json")


def page(html: bytes) -> Any:
    """A page that this project made, for an iframe: without an origin, and so without any access to this server."""
    from starlette.responses import HTMLResponse

    policy = (
        "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )  # the page itself allows fewer scripts: those whose hashes it holds
    return HTMLResponse(html, headers={"content-security-policy": policy, "x-frame-options": "SAMEORIGIN"})


async def asked(request: Any, served: Served, what: Json) -> Exchange:
    """Ask a model; the work ends when the request does."""
    exchange = await served.ask(what)
    request.scope["state"]["open"].append(exchange)
    return exchange


def version_of(exchange: Exchange) -> dict[str, str]:
    """Of the weights that answered: others may have been loaded since."""
    return {"x-seqloom-version": exchange.version}


async def stream(events: AsyncIterator[Json], headers: Mapping[str, str]) -> Any:
    """Server-sent events. What goes wrong before the first one is an answer with its status, and later an event."""
    from starlette.responses import StreamingResponse

    first = [event async for event in _some(events, 1)]

    async def lines() -> AsyncIterator[bytes]:
        try:
            for event in first:
                yield _line(event)
            async for event in events:
                yield _line(event)
            yield b"data: [DONE]\n\n"
        except Refused as refused:
            yield _line(refused.facts())

    return StreamingResponse(lines(), 200, {**headers, "x-accel-buffering": "no"}, "text/event-stream")


async def _some(events: AsyncIterator[Json], count: int) -> AsyncIterator[Json]:
    for _ in range(count):
        with suppress(StopAsyncIteration):
            yield await anext(events)


def _line(event: Json) -> bytes:
    return b"data: " + to_json(event) + b"\n\n"
