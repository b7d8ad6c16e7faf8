"""A crew: workers that run the jobs of one command. Stored results are reused, and a signal lets every worker save."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.stopping import stop_signals
from seqloom.lab.job import Job, Result
from seqloom.lab.pool import Cluster, Local, Pool
from seqloom.lab.watch import Watch
from seqloom.lab.worker import known
from seqloom.train.loop import Interrupted

_ALWAYS = 16  # processes that may run at once on any machine


def check_jobs(jobs: int, on: str = "local") -> None:
    """Refuse what starts so many processes that none gets on: each takes the memory of the libraries for itself."""
    cores = os.cpu_count() or 1
    most = max(_ALWAYS, 2 * cores) if on == "local" else 10_000
    if not 1 <= jobs <= most:
        here = f" on a machine with {cores} cores" if on == "local" else ""
        raise UserError(f"--jobs {jobs}: must be 1 to {most:,}{here}")


class Crew:
    def __init__(self, jobs: int, threads: int, watch: Watch) -> None:
        """`jobs`: how many run at once, with `threads` CPU threads each."""
        self.parallel, self.threads, self.watch = jobs, threads, watch
        self.pool: Pool | None = None
        self.stopped = 0  # the signal that stopped it

    @contextmanager
    def working(self, on: str = "local") -> Iterator[None]:
        """Start the worker pool; on a signal, the workers save their state."""
        pool = self.pool = Cluster(self.parallel, self.threads) if on == "ray" else Local(self.parallel)

        def stop(number: int, frame: Any) -> None:
            self.stopped = number
            threading.Thread(target=pool.stop, args=(signal.SIGTERM,)).start()  # the main thread may hold its locks

        main = threading.current_thread() is threading.main_thread()
        before = {n: signal.signal(n, stop) for n in stop_signals()} if main else {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            pool.close()

    def do(self, jobs: Sequence[Job]) -> list[Result]:
        return self.wait(self.submit(jobs))

    def submit(self, jobs: Sequence[Job]) -> list[Future[Result]]:
        """Futures of the results; stored results are reused."""
        return [self._submit_one(job) for job in jobs]

    def wait(self, futures: Sequence[Future[Result]]) -> list[Result]:
        wait(futures)
        if self.stopped or any(future.cancelled() or future.result()["state"] == "interrupted" for future in futures):
            raise Interrupted(self.stopped or signal.SIGTERM)
        return [future.result() for future in futures]

    def _submit_one(self, job: Job) -> Future[Result]:
        assert self.pool is not None
        if (result := known(job)) is not None:
            self.watch.end(job, result, kept=True)
            future: Future[Result] = Future()
            future.set_result(result)
            return future
        future = self.pool.submit(job, self.watch.begin)
        future.add_done_callback(partial(self._note, job))
        return future

    def _note(self, job: Job, done: Any) -> None:
        if not done.cancelled() and not done.exception():
            self.watch.end(job, done.result(), kept=False)
