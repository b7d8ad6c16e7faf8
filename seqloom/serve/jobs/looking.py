"""`python -m seqloom.serve.jobs.looking DATA [TASK]`: what a file is, as one JSON object on standard output.

A process of its own, because a file that somebody sent may take any time and memory to read; `look` starts it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqloom.core.errors import RunError, UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.runs.guess import guess_task
from seqloom.serve.jobs.children import environment

SECONDS = 60.0
_MEMORY = 4 << 30  # bytes of data of the process
_AT_ONCE = threading.Semaphore(2)


class Busy(RunError):
    """Others are being looked at."""


def look(data: str | Path, task: str | None, seconds: float = SECONDS) -> Json:
    """The tasks that suit a sample or a file, what the doctor says for the first or the given one, and which column is
    what."""
    if not _AT_ONCE.acquire(timeout=1.0):
        raise Busy("other files are being looked at; try again in a few seconds")
    try:
        folder, name = (data.parent, data.name) if isinstance(data, Path) else (None, data)  # messages have the name
        return _asked([name, *([task] if task else [])], folder, seconds)
    finally:
        _AT_ONCE.release()


def _asked(words: list[str], folder: Path | None, seconds: float) -> Json:
    command = [sys.executable, "-m", "seqloom.serve.jobs.tied", str(os.getpid())]
    command += [sys.executable, "-m", "seqloom.serve.jobs.looking", *words]
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=folder, env=environment(), start_new_session=True, **quiet
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise UserError(f"data: looking at it takes more than {seconds:.0f} s; say which task it is for") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    try:
        found: Json = json.loads(said)
    except ValueError:
        why = "too large for this machine, or not of a known kind"
        raise UserError(f"data: it cannot be looked at, {why}; send a part of it, or another format") from None
    return found


def seen(data: str, task: str | None) -> Json:
    """In the process that looks."""
    found: Json = {"tasks": [], "task": task, "columns": [], "roles": {}, "findings": []}
    try:
        found["tasks"] = [{"task": name, "reason": reason} for name, reason in guess_task(data)]
        found["task"] = task or next((guess["task"] for guess in found["tasks"]), None)
        found["columns"] = _columns(data)
        if found["task"]:
            found |= _examined(data, found["task"])
    except UserError as error:
        found["findings"].append({"level": "error", "message": str(error), "advice": ""})
    return found


def _columns(data: str) -> list[str]:
    from seqloom.data.peek import peek

    table = peek(data)
    return list(table.names) if table else []


def _examined(data: str, task: str) -> Json:
    from seqloom.data.shapes import find_shape
    from seqloom.data.shapes.columns import role_of
    from seqloom.runs.doctor import doctor
    from seqloom.runs.registry import find_config

    shapes = [find_shape(name) for name in find_config("tasks", task).shapes]
    shape = next((other for other in shapes[1:] if other.holds(data)), shapes[0])
    findings = [asdict(finding) for finding in doctor(data, task=task)]
    roles = {}
    with suppress(UserError):  # the doctor has said so
        chosen = [(role_of(shape, choice.path.removeprefix("data.")), choice.value) for choice in shape.roles(data, {})]
        roles = {role: value for role, value in chosen if role and isinstance(value, str | int)}
    return {"findings": findings, "roles": roles}


def _limit() -> None:
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


if __name__ == "__main__":
    _limit()
    given = [*sys.argv[1:], None]
    sys.stdout.buffer.write(to_json(seen(str(given[0]), given[1])))
