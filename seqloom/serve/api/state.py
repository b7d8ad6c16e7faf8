"""What the routes need of the server."""

from __future__ import annotations

from typing import Protocol

from seqloom.serve.api.past import Past
from seqloom.serve.jobs.runner import Runner
from seqloom.serve.jobs.uploads import Uploads


class State(Protocol):
    """Made once by the server, and closed by it: `jobs.close()`."""

    @property
    def past(self) -> Past: ...  # the folder of runs

    @property
    def uploads(self) -> Uploads: ...

    @property
    def jobs(self) -> Runner | None: ...  # None: this server trains nothing
