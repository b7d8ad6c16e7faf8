"""Refusals as answers: OpenAI's error format, small, and without any of what was sent, any path or any address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from seqloom.core.rows import Json

TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
TYPES |= {429: "rate_limit_error", 503: "overloaded_error"}
CODES = {400: "invalid_request", 401: "invalid_api_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
CODES |= {408: "request_timeout", 409: "conflict", 413: "body_too_large", 414: "url_too_long", 415: "content_type"}
CODES |= {429: "rate_limit_exceeded", 431: "headers_too_large", 500: "internal_error", 503: "overloaded"}
CODES |= {504: "timeout", 507: "disk_full", 422: "invalid_request"}

_PATH = re.compile(r"[\w.~-]*(?:/[^\s/:;,'\"()]+)+/?")
_ROUTE = re.compile(r"/(api|v1)(/[a-z]+)+")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b")
_LONGEST = 300  # characters of a message


class Refused(Exception):
    """Ends a request with an error answer."""

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str | None = None, wait: int = 0, close: bool = False
    ) -> None:
        """`wait`: seconds after which to try again; `close`: whether the connection ends too."""
        super().__init__(message)
        self.status, self.message, self.param, self.wait, self.close = status, message, param, wait, close
        self.code = code or CODES.get(status, "error")

    def facts(self) -> Json:
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        message = self.message if len(self.message) <= _LONGEST else self.message[:_LONGEST] + " ..."
        return {"error": {"message": message, "type": kind, "param": self.param, "code": self.code}}

    def body(self) -> bytes:
        return json.dumps(self.facts()).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        found = [(b"content-type", b"application/json")]
        if self.status == 401:
            found.append((b"www-authenticate", b"Bearer"))
        if self.wait:
            found.append((b"retry-after", str(self.wait).encode()))
        if self.close:
            found.append((b"connection", b"close"))
        return found


def busy(message: str = "the server is busy; try again") -> Refused:
    return Refused(503, message, wait=1)


def no_model() -> Refused:
    return Refused(
        404, "no such model; GET /v1/models lists those that are served", code="model_not_found", param="model"
    )


def cleaned(message: str, given: Any = None) -> str:
    """A message of a model process for a client: on one line, without paths and addresses, without what it sent."""
    sent = {key: value for key, value in given.items() if key in _SENT} if isinstance(given, dict) else None
    for text in sorted(set(_texts(sent)), key=len, reverse=True):
        message = message.replace(text, "...")
    message = _ADDRESS.sub("...", _PATH.sub(_hidden, message))
    return " ".join("".join(c if c.isprintable() else " " for c in message).split())


def _hidden(path: re.Match[str]) -> str:
    return path[0] if _ROUTE.fullmatch(path[0]) else "..."


def _texts(given: Any) -> Iterator[str]:
    """All that is long enough to be recognised."""
    if isinstance(given, str):
        if len(given) >= 4:
            yield given
    elif isinstance(given, dict):
        for key, value in given.items():
            yield from _texts(key) if key not in _SENT else ()
            yield from _texts(value)
    elif isinstance(given, list):
        for value in given[:1000]:
            yield from _texts(value)


_SENT = {"prompt", "messages", "content", "rows", "text", "texts", "options", "input", "views", "question", "stop"}
_SENT |= {"role", "second", "passage", "target", "against", "patch_with", "path"}
