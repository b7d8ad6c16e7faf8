"""Generated requests, valid and not, from the schema of the application: no answer is an error of the server."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import compare_example
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from serve_toys import AUTHORIZED, Running, serving

from seqloom.runs.kept import write_json
from seqloom.serve.app import create_app
from seqloom.serve.jobs import looking
from seqloom.serve.jobs.choosing import Choices

CASES = int(os.environ.get("SEQLOOM_SCHEMA_CASES", "200"))
ERROR = {"message", "type", "param", "code"}
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


ROUTES = ["/v1/completions", "/session", "/api/models/{name}/predict", "/api/runs/{run}/curve", "/api/uploads"]
ROUTES += ["/api/comparisons/{comparison}/report", "/api/jobs", "/api/jobs/look", "/api/jobs/{job}/events"]
NOTHING_INSIDE = re.compile(rb'/tmp|/root|/home|site-packages|Traceback|\b0x[0-9a-f]{6,}|\.py\b|File "|sqlite')
SEEN: dict[str, Any] = {"tasks": [], "task": None, "columns": [], "roles": {}, "findings": []}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with whole(tmp_path_factory.mktemp("schema")) as running:
        yield running


@contextmanager
def whole(folder: Path) -> Iterator[Running]:
    """With all routes; what they would start processes for is quick here."""
    runs = folder / "runs"
    shutil.copytree(Path(__file__).parent / "golden" / "runs" / "language_model", runs / "lm")
    (runs / "cmp").mkdir()
    write_json(runs / "cmp" / "comparison.json", {"plan": {"task": "language_model"}})
    write_json(runs / "cmp" / "result.json", compare_example.example())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Choices, "_asked", lambda self: {"tasks": [], "models": [], "samples": [], "budgets": {}})
        patch.setattr(looking, "_asked", lambda *_: SEEN)
        with serving("book", "chat", "label", indexes=["notes"], runs=runs) as running:
            assert running.state.jobs
            running.state.jobs.program = [sys.executable, "-c", ""]
            yield running


def real(server: Running) -> dict[str, str]:
    """For the names in paths: what is there."""
    upload = server.ask("POST", "/api/uploads?name=a.csv", b"text\na\n").json()["id"]
    order = {"kind": "compare", "data": "sample:sine", "key": "one"}
    job = server.ask("POST", "/api/jobs", order).json()["id"]
    assert server.ask("GET", f"/api/jobs/{job}/events").body.endswith(b"data: [DONE]\n\n")
    return {"{name}": "book", "{run}": "lm", "{comparison}": "cmp", "{upload}": upload, "{job}": job}


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
    paths = schema_of(server)["paths"]
    assert set(ROUTES) <= paths.keys() and len(paths) >= 30
    for path, methods in paths.items():
        for method, about in methods.items():
            assert {"400", "401", "403", "413", "429", "503"} <= about["responses"].keys(), (path, method)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES, ids=["valid", "invalid"])
def test_no_generated_request_is_an_error_of_the_server(server: Running, mode: Any) -> None:
    schema = schemathesis.openapi.from_dict(schema_of(server))
    operations = [found.ok() for found in schema.get_all_operations()]
    each = max(1, CASES // 2 // len(operations))
    codes: dict[int, int] = {}
    names = real(server)
    lock = threading.Lock()
    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=each, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def run(case: Any) -> None:
            found = send(server, case, names)
            with lock:
                codes[found] = codes.get(found, 0) + 1
            assert found < 500 or found in (503, 507), (case.method, case.formatted_path, found)

        with suppress(Unsatisfiable):  # a route without a parameter has no invalid request
            run()
    assert sum(codes.values()) >= CASES // 10, codes
    assert sum(number for code, number in codes.items() if code >= 500) <= CASES // 50, codes
    print(f"{sum(codes.values()):,} requests to {len(operations)} operations: {dict(sorted(codes.items()))}")


def send(server: Running, case: Any, names: dict[str, str]) -> int:
    """Over a raw connection; the names in paths are real ones in half of the cases. No error tells of the inside."""
    sent = case.as_transport_kwargs(base_url=f"http://localhost:{server.port}", headers=AUTHORIZED)
    body = sent.get("json")
    data = json.dumps(body).encode() if body is not None else sent.get("data") or b""
    path = case.formatted_path
    if random.randrange(2):
        path = case.path
        for name, value in names.items():
            path = path.replace(name, value)
    if case.query:
        path += "?" + urlencode(case.query, doseq=True, errors="replace")
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 2:
        data = json.dumps(body | {"model": "book"}).encode()
    data = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    path = "".join(c if c.isascii() and c.isprintable() and c not in " #" else "_" for c in path)
    headers = {"Content-Type": "application/json"} if data else {}
    found = server.ask(case.method.upper(), path, data or None, headers)
    if found.status >= 400:
        assert len(found.body) <= server.state.limits.error and found.json()["error"].keys() == ERROR
        assert not NOTHING_INSIDE.search(found.body), found.body
    return found.status
