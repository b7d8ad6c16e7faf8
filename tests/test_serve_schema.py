"""Generated requests, valid and not, from the schema of the application: no answer is an error of the server."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from serve_toys import AUTHORIZED, Running, serving

from seqloom.serve.app import create_app

CASES = int(os.environ.get("SEQLOOM_SCHEMA_CASES", "100"))
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving("book", "chat", "label", indexes=["notes"]) as running:
        yield running


def schema_of(server: Running) -> Any:
    """As it would be served at /openapi.json, which the shipped server does not do."""
    app = create_app(server.state, schema=True).app
    found = asyncio.run(_get(app, "/openapi.json"))
    assert server.ask("GET", "/openapi.json").status == server.ask("GET", "/docs").status == 404
    return found


async def _get(app: Any, path: str) -> Any:
    body = b""

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal body
        body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    await app({**scope, "root_path": "", "scheme": "http", "server": ("localhost", 80), "state": {}}, receive, send)
    return json.loads(body)


def test_every_route_declares_its_errors(server: Running) -> None:
    for path, methods in schema_of(server)["paths"].items():
        for method, about in methods.items():
            assert {"400", "401", "403", "413", "429", "503"} <= about["responses"].keys(), (path, method)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
def test_no_generated_request_is_an_error_of_the_server(server: Running, mode: Any) -> None:
    schema = schemathesis.openapi.from_dict(schema_of(server))
    operations = [found.ok() for found in schema.get_all_operations()]
    each = max(1, CASES // 2 // len(operations))
    codes: dict[int, int] = {}
    lock = threading.Lock()
    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=each, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def run(case: Any) -> None:
            found = send(server, case)
            with lock:
                codes[found] = codes.get(found, 0) + 1
            assert found < 500, (case.method, case.formatted_path, found)

        with suppress(Unsatisfiable):  # a route without a parameter has no invalid request
            run()
    assert sum(codes.values()) >= CASES // 4, codes


def send(server: Running, case: Any) -> int:
    """Over a raw connection; the names in paths are those of models in half of the cases."""
    sent = case.as_transport_kwargs(base_url=f"http://localhost:{server.port}", headers=AUTHORIZED)
    body = sent.get("json")
    data = json.dumps(body).encode() if body is not None else sent.get("data") or b""
    path = case.formatted_path if len(str(body)) % 2 else case.path.replace("{name}", "book")
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 2:
        data = json.dumps(body | {"model": "book"}).encode()
    data = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    path = "".join(c if c.isascii() and c.isprintable() and c not in " #" else "_" for c in path)
    headers = {"Content-Type": "application/json"} if data else {}
    found = server.ask(case.method.upper(), path, data or None, headers)
    assert len(found.body) <= server.state.limits.error or found.status < 400
    return found.status
