"""What the routes about runs, uploads and jobs need: made when the server starts, closed when it stops."""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.serve.state import State

log = logging.getLogger("seqloom.serve")
FOLDER = ".serve"  # in the folder of runs: uploads, and the store of jobs


def equip(state: State) -> None:
    """Jobs are taken on by one server per folder of runs, if it can write there; the rest works without."""
    if state.past is not None or find_spec("seqloom.serve.api") is None:
        return
    folder = state.runs / FOLDER
    state.past = import_module("seqloom.serve.api.past").Past(state.runs)
    uploads = import_module("seqloom.serve.jobs.uploads").Uploads
    state.uploads = uploads(folder / "uploads", largest=state.limits.upload)
    try:
        store = import_module("seqloom.serve.jobs.store").Store(folder)
        runner = import_module("seqloom.serve.jobs.runner").Runner(store, state.runs, state.uploads)
        runner.start()
    except (UserError, OSError) as error:
        log.warning("no jobs are taken on: %s", quoted(str(error), 300))
        return
    state.jobs = runner
    state.closing.append(runner.close)
