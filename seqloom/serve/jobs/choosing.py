"""`python -m seqloom.serve.jobs.choosing`: what the form of the page offers, as one JSON object on standard output.

Which models a task accepts only the tasks and models know, so it is asked of them once, in a process that loads torch,
and the answer is kept for this version. `Choices` is for the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from seqloom.core.errors import RunError, UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.runs import durable, listing
from seqloom.runs.guess import SAMPLED
from seqloom.runs.regular import read_regular
from seqloom.serve.jobs.children import environment

_SECONDS = 120.0
_MOST = 1 << 20  # bytes of what is kept
_TINY = {  # a sample of each kind that is quick to read
    "language_model": "sample:python-docs",
    "masked_lm": "sample:python-docs",
    "classification": "sample:languages",
    "tagging": "sample:places",
    "translation": "sample:reversal",
    "question_answering": "sample:facts",
    "forecasting": "sample:sine",
}
_OTHERS = {"pretrained"}  # starts from weights that have to be installed first
_BUDGETS = {
    "fit": ["minutes=1", "minutes=5", "minutes=20", "minutes=60"],
    "compare": ["minutes=5", "minutes=20", "minutes=60", "minutes=240"],
}


class Choices:
    """What can be chosen; the first time it takes some seconds."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"choices-{VERSION}.json"
        self._lock = threading.Lock()
        self._found: Json | None = None

    def all(self) -> Json:
        with self._lock:
            if self._found is None:
                self._found = self._kept() or self._asked()
            return self._found

    def _kept(self) -> Json | None:
        try:
            found: Json = json.loads(read_regular(self._path, _MOST))
            return found if found.keys() == {"tasks", "models", "samples", "budgets"} else None
        except (OSError, ValueError, AttributeError):
            return None

    def _asked(self) -> Json:
        words = [sys.executable, "-m", "seqloom.serve.jobs.tied", str(os.getpid())]
        words += [sys.executable, "-m", "seqloom.serve.jobs.choosing"]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, env=environment(), check=True
            )
            found: Json = json.loads(done.stdout)
        except (subprocess.SubprocessError, ValueError) as error:
            raise RunError("the choices cannot be found out now; try again, or name task and model yourself") from error
        try:
            durable.make_folder(self._path.parent)
            durable.write_file(self._path, to_json(found))
        except (OSError, UserError):  # then it is asked again after a restart
            pass
        return found


def choices() -> Json:
    """In the process that asks."""
    samples = [{"data": row["sample"], "task": SAMPLED[row["kind"]], "what": row["what"]} for row in listing.samples()]
    models = [row for row in listing.models() if row["model"] not in _OTHERS]
    tasks = [_task(row, [model["model"] for model in models]) for row in listing.tasks()]
    return {"tasks": tasks, "models": models, "samples": samples, "budgets": _BUDGETS}


def _task(row: Json, models: list[str]) -> Json:
    from seqloom.compare.defaults import default_models

    return {**row, "models": list(filter(_question(row["task"]), models)), "usual": list(default_models(row["task"]))}


def _question(task: str) -> Callable[[str], bool]:
    """Whether this task, on the sample of its kind, takes a model as it comes."""
    from seqloom.runs.build import blueprint
    from seqloom.runs.configure import configure
    from seqloom.runs.material import Material

    made: list[object] = []

    def accepts(model: str) -> bool:
        try:
            config = configure(None, {"task": {"name": task}, "model": {"name": model}, "data": {"train": _TINY[task]}})
            if not made:
                material = Material(config)
                made.append(material.task(material.new_vocabulary()))
            blueprint(config, made[0])  # type: ignore[arg-type]
        except (UserError, KeyError):
            return False
        return True

    return accepts


if __name__ == "__main__":
    sys.stdout.buffer.write(to_json(choices()))
