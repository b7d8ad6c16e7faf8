"""A server made of the /api routes alone, for their tests: a folder of runs, uploads, and a runner of jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from seqloom.serve.api import routers
from seqloom.serve.api.past import Past
from seqloom.serve.jobs.runner import Runner
from seqloom.serve.jobs.store import Store
from seqloom.serve.jobs.uploads import Uploads

FAKE = [sys.executable, str(Path(__file__).parent / "fake_program.py")]


@dataclass
class Desk:
    past: Past
    uploads: Uploads
    jobs: Runner | None


def client(desk: Desk) -> TestClient:
    """What a handler raises is an answer of 500, as it is for everybody else."""
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError

    app = FastAPI()
    app.add_exception_handler(RequestValidationError, refused)
    for routes in routers(desk):
        app.include_router(routes)
    return TestClient(app, raise_server_exceptions=False)


async def refused(request: Request, error: Exception) -> Response:
    """As the server does it: what was sent is not repeated."""
    return JSONResponse({"error": {"message": "the request is not valid", "type": "invalid_request_error"}}, 422)


@contextmanager
def opened(
    folder: Path, runs: Path | None = None, program: Sequence[str] = FAKE, start: bool = True, **limits: Any
) -> Iterator[Desk]:
    """With its state in `folder`; unless `start`, jobs are taken on and wait."""
    runs, uploads = runs or folder / "runs", Uploads(folder / "state" / "uploads", **limits)
    runner = Runner(Store(folder / "state"), runs, uploads, program=program, grace=2.0)
    if start:
        runner.start()
    try:
        yield Desk(Past(runs), uploads, runner)
    finally:
        runner.close()
