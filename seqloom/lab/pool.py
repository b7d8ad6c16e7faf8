"""Where jobs run: in processes on this machine, or on a Ray cluster. The same job gives the same result on both."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import get_context
from queue import Empty, PriorityQueue, SimpleQueue
from types import ModuleType
from typing import Any, Protocol

from seqloom.core.errors import UserError
from seqloom.lab import worker
from seqloom.lab.job import Job, Result


class Pool(Protocol):
    def submit(self, job: Job, started: Callable[[Job], None]) -> Future[Result]: ...
    def stop(self, number: int) -> None: ...
    def close(self) -> None: ...


class _Queue:
    """Waiting jobs: a free worker takes the one with the lowest `turn`."""

    def __init__(self, jobs: int) -> None:
        self.threads = ThreadPoolExecutor(jobs)
        self.waiting: PriorityQueue[tuple[list[int], int, Job, Callable[[Job], None], Future[Result]]] = PriorityQueue()
        self.numbers = count()

    def submit(self, job: Job, started: Callable[[Job], None]) -> Future[Result]:
        future: Future[Result] = Future()
        self.waiting.put((job["turn"], next(self.numbers), job, started, future))
        try:
            self.threads.submit(self._next)
        except RuntimeError:  # stopped
            self._drop()
        return future

    def _next(self) -> None:
        try:
            _, _, job, started, future = self.waiting.get_nowait()
        except Empty:  # dropped in the meantime
            return
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(self._run(job, started))
            except BaseException as error:
                future.set_exception(error)

    def _run(self, job: Job, started: Callable[[Job], None]) -> Result:
        raise NotImplementedError

    def _end(self, wait: bool) -> None:
        """Start no more jobs."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        self._drop()
        self.threads.shutdown(wait=wait)

    def _drop(self) -> None:
        with suppress(Empty):
            while True:
                future = self.waiting.get_nowait()[-1]
                future.cancel()
                future.set_running_or_notify_cancel()


class Local(_Queue):
    """Processes that last as long as the comparison, one job at a time; if one dies, only its job fails."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.slots: SimpleQueue[_Slot] = SimpleQueue()
        self.all = [_Slot() for _ in range(jobs)]
        for slot in self.all:
            self.slots.put(slot)

    def _run(self, job: Job, started: Callable[[Job], None]) -> Result:
        slot = self.slots.get()
        started(job)
        try:
            return slot.run(job)
        finally:
            self.slots.put(slot)

    def stop(self, number: int) -> None:
        """Ask every process to save its work and exit."""
        self._end(wait=False)
        for slot in self.all:
            slot.signal(number)

    def close(self) -> None:
        self._end(wait=True)
        for slot in self.all:
            slot.close()


class _Slot:
    """One worker process, restarted if it dies."""

    def __init__(self) -> None:
        self.executor: ProcessPoolExecutor | None = None
        self.stopped = False

    def run(self, job: Job) -> Result:
        if self.executor is None:
            self.executor = ProcessPoolExecutor(1, get_context("spawn"), worker.begin, (os.getpid(),))
        with _main_hidden():
            future = self.executor.submit(worker.work, job)
        try:
            return future.result()
        except BrokenProcessPool:
            self.close()
            if self.stopped:  # by a signal that arrived while nothing was being trained
                return {"state": "interrupted", "error": "stopped", "wall": 0.0}
            return {"state": "failed", "error": "the worker process died (out of memory?)", "wall": 0.0}

    def signal(self, number: int) -> None:
        self.stopped = True
        for process in list((self.executor._processes or {}).values()) if self.executor else ():
            if process.is_alive() and process.pid:
                os.kill(process.pid, number)

    def close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=True, cancel_futures=True)
            self.executor = None


_hiding = threading.Lock()


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep a new process from importing the script that calls `compare`, and so from calling it again."""
    with _hiding:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class Cluster(_Queue):
    """A Ray cluster whose machines share the comparison's folder: the one at RAY_ADDRESS, else a local one."""

    def __init__(self, jobs: int, threads: int) -> None:
        try:
            import ray
        except ImportError:
            raise UserError("--on ray needs the ray package: pip install 'seqloom[cluster]'") from None
        super().__init__(jobs)
        self.ray = ray
        if not ray.is_initialized():
            try:
                ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
            except ConnectionError:
                raise UserError(
                    "--on ray: no Ray cluster found; start one with `ray start --head`, or set RAY_ADDRESS"
                ) from None
        self.remote = ray.remote(num_cpus=threads, max_retries=0)(worker.remote)
        self.running: list[Any] = []

    def _run(self, job: Job, started: Callable[[Job], None]) -> Result:
        started(job)
        reference = self.remote.remote(job)
        self.running.append(reference)
        try:
            return self.ray.get(reference)
        except (self.ray.exceptions.WorkerCrashedError, self.ray.exceptions.OutOfMemoryError) as error:
            return {"state": "failed", "error": f"the worker process died ({type(error).__name__})", "wall": 0.0}
        except self.ray.exceptions.TaskCancelledError:
            return {"state": "interrupted", "error": "stopped", "wall": 0.0}
        finally:
            self.running.remove(reference)

    def stop(self, number: int) -> None:
        self._end(wait=False)
        for reference in list(self.running):
            self.ray.cancel(reference)

    def close(self) -> None:
        self._end(wait=True)
