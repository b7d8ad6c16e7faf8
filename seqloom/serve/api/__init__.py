"""The routes under /api that are not about a loaded model: runs, comparisons, studies, uploads and jobs.

Nothing here loads torch. One file per topic, each with `router(state)`; `State` says what the server gives them.
"""

from typing import Any

from seqloom.serve.api.state import State


def routers(state: State) -> list[Any]:
    """All of them, to be mounted without a prefix and in this order: /api/jobs/choices is no id of a job."""
    from seqloom.serve.api import comparisons, jobs, offers, runs, studies, uploads

    return [topic.router(state) for topic in (runs, comparisons, studies, uploads, offers, jobs)]
