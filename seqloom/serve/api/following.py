"""A job as the page sees it: how far it is, and its lines as server-sent events while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime

from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.serve.api.past import id_of
from seqloom.serve.jobs.runner import Runner
from seqloom.serve.jobs.store import ENDED, Job

_EVERY, _ALIVE = 0.25, 15.0  # seconds between looks for new lines, and between signs of life

Lines = list[tuple[int, str]]


async def follow(runner: Runner, job: Job, after: int) -> AsyncIterator[bytes]:
    """Lines as they come, the job whenever its state changes, and at the end `[DONE]`: of the job, or of the server."""
    from starlette.concurrency import run_in_threadpool

    state, spoken = "", time.monotonic()
    while state not in ENDED and not runner.closing:
        now, lines = await run_in_threadpool(_news, runner, job, after)
        for number, text in lines:
            after = number
            yield _event({"line": text, "number": number, "progress": share(text)}, number)
        if now.state != state:
            state = now.state
            yield _event({"job": await run_in_threadpool(row, runner, now)})
        elif not lines and time.monotonic() - spoken < _ALIVE:
            await asyncio.sleep(_EVERY)
            continue
        elif not lines:
            yield b": alive\n\n"
        spoken = time.monotonic()
    yield b"data: [DONE]\n\n"


def row(runner: Runner, job: Job) -> Json:
    said = runner.store.last_lines(job.number)
    shares = [found for text in said if (found := share(text)) is not None]
    place = runner.result(job)
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "asked": job.asked,
        "created": _when(job.created),
        "started": _when(job.started),
        "ended": _when(job.ended),
        "code": job.code,
        "message": job.message,
        "progress": 1.0 if job.state == "done" else shares[-1] if shares else None,
        "line": said[-1] if said else None,
        "result": id_of(runner.runs, place) if place else None,
    }


def share(line: str) -> float | None:
    """Of the whole, where a line begins with it: `40%  step 1,200  loss 1.71`, or says `2 of 10 done`."""
    head = line.strip().split("%")[0]
    if "%" in line and head.isascii() and head.isdecimal() and len(head) <= 3:
        return min(1.0, int(head) / 100)
    words = [word.rstrip(",") for word in line.split()]
    for done, of, total, word in zip(words, words[1:], words[2:], words[3:], strict=False):
        if (of, word) == ("of", "done") and done.isdecimal() and total.isdecimal() and int(total):
            return min(1.0, int(done) / int(total))
    return None


def _news(runner: Runner, job: Job, after: int) -> tuple[Job, Lines]:
    """The state is read before the lines, so that none that was said before the end is lost."""
    now = runner.store.job(job.id) or job
    return now, runner.store.lines(job.number, after)


def _event(value: Json, number: int | None = None) -> bytes:
    return (f"id: {number}\n".encode() if number else b"") + b"data: " + to_json(value) + b"\n\n"


def _when(seconds: float | None) -> str | None:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds") if seconds else None
