"""Does the jobs of a store: at most so many at once, each as a child process in a folder of its own.

RUNS/jobs/ID/data/NAME    what it is trained on, if that was uploaded
RUNS/jobs/ID/run          the result: a run or a comparison, in the lists like any other
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.runs import durable
from seqloom.serve.jobs.children import Child, kill_left
from seqloom.serve.jobs.request import RUN, Order
from seqloom.serve.jobs.store import ENDED, ID, Job, Store
from seqloom.serve.jobs.uploads import Uploads

FOLDER, DATA = "jobs", "data"  # in the folder of runs, and in that of a job
_TICK, _IDLE = 0.1, 5.0  # seconds between looks at the children, and at the queue, where a new job is seen at once
_TRIES, _PAUSE = 10, 2.0  # where the folder of a job is still in use by what a killed server left
_IN_USE = ": in use by "


class _Running:
    """A job that was taken and has not ended in the store. Without a child it could not be started."""

    def __init__(self, job: Job, child: Child | None, fault: str = "") -> None:
        self.job, self.child, self.fault = job, child, fault
        self.killed_at: float | None = None  # when patience with a cancelled job ends

    def ended(self) -> bool:
        return self.child is None or self.child.ended() is not None

    def signal(self, number: int) -> None:
        if self.child:
            self.child.signal(number)


class Runner:
    def __init__(
        self,
        store: Store,
        runs: Path,
        uploads: Uploads,
        *,
        at_once: int = 1,
        program: Sequence[str] = (sys.executable, "-m", "seqloom"),
        grace: float = 5.0,
    ) -> None:
        """`grace`: seconds that a job has to save its work when it is stopped."""
        self.store, self.runs, self.uploads, self.at_once = store, runs, uploads, at_once
        self.program, self.grace = list(program), grace
        self._running: dict[int, _Running] = {}
        self._wake = threading.Event()
        self.closing = False  # nothing is begun any more, and nobody needs to wait for an end
        self._mark = store.name
        self._submitting = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        """Go on with what a former server left."""
        kill_left(self._mark)
        self.store.recover()
        self._forget_strays()
        self._thread.start()

    def close(self) -> None:
        """Stop: what is running saves its work, and is continued by the next server."""
        self.closing = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.store.close()

    def submit(self, order: Order) -> tuple[Job, bool]:
        """The job, and whether it is new. Raises UserError, or what a disk that cannot be written raises."""
        with self._submitting:  # so that the same key at the same time makes one folder
            if order.key and self.store.by_key(order.key):
                return self.store.submit(order, "")
            id = secrets.token_hex(8)
            folder = self._folder(id)
            try:
                durable.make_folder(folder / DATA)
                self._keep_upload(order, folder)
                found = self.store.submit(order, id)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        self._wake.set()
        return found

    def cancel(self, id: str) -> Job | None:
        job = self.store.stop(id)
        self._wake.set()
        return job

    def result(self, job: Job) -> Path | None:
        """Its run or comparison, if there is one yet."""
        folder = self._folder(job.id) / RUN
        return folder if any((folder / name).exists() for name in ("run.json", "comparison.json")) else None

    def _folder(self, id: str) -> Path:
        return self.runs / FOLDER / id

    def _keep_upload(self, order: Order, folder: Path) -> None:
        """A link to what is trained on, or a copy where links are not possible: it may be deleted or expire."""
        if order.upload is None:
            return
        path = self.uploads.path(order.upload)
        if path is None:
            raise UserError("data: there is no upload of this id; send the file first")
        try:
            _link(path, folder / DATA / path.name)
        except FileNotFoundError:
            raise UserError("data: the upload was deleted at this moment; send the file again") from None

    def _forget_strays(self) -> None:
        """Folders of jobs that were never taken on, because the server was killed before."""
        known = self.store.ids()
        with suppress(OSError):
            for folder in (self.runs / FOLDER).iterdir():
                if ID.fullmatch(folder.name) and folder.name not in known and not (folder / RUN).exists():
                    shutil.rmtree(folder, ignore_errors=True)

    def _work(self) -> None:
        while not self.closing:
            wait = 1.0
            try:
                self._begin_some()
                wait = _TICK if self._running else _IDLE
                wait = 0.0 if self._look_after() else wait
            except (OSError, sqlite3.Error):  # the disk is full: later it may not be
                pass
            self._pause(wait)
        self._stop_all()

    def _pause(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()

    def _begin_some(self) -> None:
        while len(self._running) < self.at_once and (job := self.store.take()):
            self._running[job.number] = self._begin(job)

    def _begin(self, job: Job) -> _Running:
        try:
            words = [*self.program, *self._words(job)]
            return _Running(job, Child(words, self._folder(job.id), self._mark, self._keeper(job)))
        except (UserError, ValueError) as error:  # ValueError: another version took it on
            return _Running(job, None, str(error).splitlines()[0])
        except OSError as error:
            return _Running(job, None, f"cannot be started: {durable.reason(error)}; send the job again")

    def _words(self, job: Job) -> list[str]:
        order, folder = job.order, self._folder(job.id)
        if order.upload is None:
            return order.command(order.data)
        files = list((folder / DATA).iterdir()) if (folder / DATA).is_dir() else []
        if len(files) != 1:
            raise UserError("the data of the job is gone; send the file and the job again")
        return order.command(str(files[0].resolve()))

    def _keeper(self, job: Job) -> Callable[[str], None]:
        def say(line: str) -> None:
            with suppress(sqlite3.Error):  # progress is not worth failing for
                self.store.say(job.number, self._plain(job, line))

        return say

    def _plain(self, job: Job, text: str) -> str:
        """Without where the server keeps its files."""
        for folder in (self._folder(job.id), self.runs):
            for place in (folder / DATA, folder):
                text = text.replace(f"{place.resolve()}/", "").replace(f"{place}/", "")
        return text

    def _look_after(self) -> bool:
        """Whether one has ended, so that there is room for the next."""
        before = len(self._running)
        for running in list(self._running.values()):
            if running.ended():
                self._end(running)
                del self._running[running.job.number]
            elif (job := self.store.job(running.job.id)) and job.stopping:
                self._stop(running)
        return len(self._running) < before

    def _stop(self, running: _Running) -> None:
        """Ask it to save its work; after a while it has to go."""
        now = time.monotonic()
        if running.killed_at is None:
            running.killed_at = now + self.grace
            running.signal(signal.SIGTERM)
        elif now > running.killed_at:
            running.signal(signal.SIGKILL)

    def _end(self, running: _Running) -> None:
        job, child = self.store.job(running.job.id), running.child
        if job is None or job.state in ENDED:
            return
        code = child.ended() if child else None
        if code == 0:
            self.store.end(job.number, "done", 0, None)
        elif job.stopping:
            self.store.end(job.number, "cancelled", code, None)
        elif child is None or code is None:
            self.store.end(job.number, "failed", None, self._plain(job, running.fault))
        elif _IN_USE in child.said and job.attempts < _TRIES:
            self._pause(_PAUSE)
            self.store.again(job.number)
        else:
            self.store.end(job.number, "failed", code, self._plain(job, _reason(code, child.said)))

    def _stop_all(self) -> None:
        children = [running.child for running in self._running.values() if running.child]
        for child in children:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + self.grace
        for child in children:
            if not child.wait(until - time.monotonic()):
                child.signal(signal.SIGKILL)
                child.wait(self.grace)
            child.ended()


def _link(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
        durable.sync_folder(place.parent)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        with open(path, "rb") as file, durable.new_file(place) as copy:
            shutil.copyfileobj(file, copy)


def _reason(code: int, said: str) -> str:
    """In one line."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"ended by {name}" + ("; out of memory is the usual reason" if code == -signal.SIGKILL else "")
    return said.removeprefix("seqloom: ") if said.startswith("seqloom: ") else said or f"ended with exit code {code}"
