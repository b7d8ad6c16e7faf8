"""What needs no token: the page, its files, health, and exchanging the token for a cookie."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from seqloom.serve.answers import Body, add_route, answer, body_of
from seqloom.serve.checks import CSRF_COOKIE, SESSION_COOKIE, Head, wrong_token
from seqloom.serve.state import State
from seqloom.serve.static import respond
from seqloom.serve.token import digest, same


class Login(Body):
    token: str = Field(max_length=1000)


def router(state: State) -> Any:
    from fastapi import APIRouter

    routes = APIRouter()

    async def shell(request: Any) -> Any:
        return respond(request, "index.html")

    async def static(request: Any) -> Any:
        return respond(request, request.path_params["name"])

    async def health(request: Any) -> Any:
        well = state.models.ready and not state.stopping
        waits = {each.child.status for each in state.models} - {"ready"}
        status = "ok" if well else "stopping" if state.stopping else sorted(waits)[0]
        return answer({"status": status}, 200 if well else 503, None if well else {"retry-after": "1"})

    async def session(request: Any) -> Any:
        given = digest(body_of(request, Login).token.encode())
        if state.digest is not None and not same(given, state.digest):
            raise wrong_token(Head.of(request.scope).address, state.attempts)
        cookie, opened = state.sessions.open()
        done = answer({"csrf": opened.csrf})
        how: Any = {"max_age": int(state.limits.session_seconds), "secure": state.secure, "samesite": "strict"}
        done.set_cookie(SESSION_COOKIE, cookie, httponly=True, **how)
        done.set_cookie(CSRF_COOKIE, opened.csrf, **how)
        return done

    add_route(routes, "GET", "/", shell, answer="text/html")
    add_route(routes, "GET", "/static/{name:path}", static, errors=(404,), answer="text/javascript")
    add_route(routes, "GET", "/health", health)
    add_route(routes, "POST", "/session", session, Login)
    return routes
