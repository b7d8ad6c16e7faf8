"""The application: routes, error answers, and the guard in front of all of it."""

from __future__ import annotations

import logging
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqloom.core.errors import RunError, UserError
from seqloom.core.quoting import quoted
from seqloom.core.version import VERSION
from seqloom.serve import answers
from seqloom.serve.faults import Refused, cleaned
from seqloom.serve.guard import Guard
from seqloom.serve.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("seqloom.serve")
ROUTERS = (  # each has `router(state)`
    "seqloom.serve.direct.entry",
    "seqloom.serve.direct.models",
    "seqloom.serve.openai.routes",
)


def create_app(state: State, schema: bool = False) -> Guard:
    """`schema`: also serve the OpenAPI schema at /openapi.json, for tests."""
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    app = FastAPI(
        title="seqloom", version=VERSION, docs_url=None, redoc_url=None, redirect_slashes=False,
        openapi_url="/openapi.json" if schema else None,
    )  # fmt: skip
    routers = list(_routers(state))
    for router in routers:
        app.include_router(router, responses={code: answers.error_answer() for code in answers.EVERYWHERE})
    for kind in (Refused, UserError, HTTPException, RequestValidationError, OSError, Exception):
        app.add_exception_handler(kind, _answer_error)
    guard = Guard(app, state)
    guard.routes = [route for router in routers for route in router.routes]
    return guard


def _routers(state: State) -> Iterator[Any]:
    for name in ROUTERS:
        yield import_module(name).router(state)
    if state.past is not None:
        yield from import_module("seqloom.serve.api").routers(state)


async def _answer_error(request: Any, error: Exception) -> Any:
    from starlette.responses import Response

    refused = _refused(error, request.scope["state"].get("json"))
    headers = {name.decode(): value.decode() for name, value in refused.headers()}
    return Response(refused.body(), refused.status, headers)


def _refused(error: Any, given: Any) -> Refused:
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    if isinstance(error, Refused):
        return error
    if isinstance(error, UserError):
        return Refused(500 if isinstance(error, RunError) else 400, cleaned(str(error), given))
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        place = [*first["loc"], None, None]
        ours = isinstance(place[1], str) and first["type"] != "extra_forbidden"
        return answers.mistake(first, place[1] if ours else None)
    if isinstance(error, OSError):
        log.error("%s", quoted(f"{type(error).__name__}: {error.strerror}"))
        full = error.errno in (28, 122, 27)  # no space, over quota, too large
        return Refused(507, "no space left to write") if full else Refused(500, "internal error")
    if not isinstance(error, HTTPException):
        return Refused(500, "internal error")
    usual = error.detail == HTTPStatus(error.status_code).phrase
    said = {404: "no such route", 405: "this method is not allowed here"}.get(error.status_code, "refused")
    wait = 1 if error.status_code == 503 else 0
    return Refused(error.status_code, said if usual else cleaned(str(error.detail), given), wait=wait)
