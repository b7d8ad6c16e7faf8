"""Commands that die: run in forked children, which have torch already, and killed at random moments.

A moment is a time (the whole process group dies, with a signal from outside) or a file operation (the child kills its
group itself, right before its Nth open for writing, write, fsync, rename, mkdir, remove; a write may be torn).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from seqloom import cli

POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE = 300.0  # seconds, after which a command hangs
_AUDITED = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "sqlite3.connect"}
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Moment:
    """When a command is killed: after so many seconds, or at its Nth file operation; never, if both are 0."""

    seconds: float = 0.0
    operation: int = 0
    number: int = signal.SIGKILL
    workers: bool = True  # kill those too that have a process group of their own


@dataclass(frozen=True)
class End:
    code: int  # exit code, or minus the signal
    seconds: float
    operations: int = 0
    said: str = ""

    @property
    def stopped(self) -> bool:
        """By a signal, and not by itself: also by one that it handled."""
        return self.code < 0 or self.code in {128 + number for number in POLITE}


def draw(rng: random.Random, whole: End, left: float = 1.0) -> Moment:
    """A moment of a command that takes as long, and does as many operations, as `whole`, from this share of
    it that is left."""
    if rng.random() < 0.2:
        return Moment(seconds=rng.uniform(0, left * whole.seconds), number=rng.choice(POLITE))
    if whole.operations and rng.random() < 0.5:
        return Moment(operation=rng.randint(1, max(1, round(left * whole.operations))))
    return Moment(seconds=rng.uniform(0, left * whole.seconds), workers=rng.random() < 0.5)


NEVER = Moment()


def run(folder: Path, words: Sequence[str], moment: Moment = NEVER, tweak: Callable[[], None] | None = None) -> End:
    """Run a command in this folder, and kill it at the moment given."""
    started, report = time.monotonic(), folder.parent / "report"
    report.unlink(missing_ok=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, POLITE)  # until the child has begun
    child = os.fork()
    if child == 0:
        _work(folder, words, moment.operation, tweak)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, POLITE)
    try:
        code = _watch(child, started, moment)
    finally:
        _kill(child)
    facts = json.loads(report.read_bytes()) if code >= 0 and report.exists() else {}
    for name in facts.get("modules", ()):  # the next child need not load them again
        with suppress(Exception):
            import_module(name)
    output = folder.parent / "said"
    said = output.read_text(errors="replace") if output.exists() else ""
    return End(code, facts.get("seconds", time.monotonic() - started), facts.get("operations", 0), said)


def _watch(child: int, started: float, moment: Moment) -> int:
    """Wait for the end, and bring it about when it is time."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if moment.seconds and time.monotonic() - started >= moment.seconds:
            _end(child, moment)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert time.monotonic() - started < PATIENCE, "it hangs"
        time.sleep(0.001)


def _end(child: int, moment: Moment) -> None:
    if moment.number != signal.SIGKILL:
        os.kill(child, moment.number)
        return
    workers = psutil.Process(child).children(recursive=True) if moment.workers else []
    _kill(child)
    for worker in workers:
        with suppress(psutil.Error):
            worker.kill()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _work(folder: Path, words: Sequence[str], at: int, tweak: Callable[[], None] | None) -> None:
    """The child: it never returns."""
    code, loaded = 1, set(sys.modules)
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        sys.stdout = sys.stderr = open("../said", "w", buffering=1)  # noqa: SIM115
        os.environ["SEQLOOM_CACHE"] = str(folder / "cache")
        sys.argv = ["seqloom", *words]
        if tweak is not None:
            tweak()
        operations = _Operations(at)
        started = time.monotonic()
        code = 130  # of a SIGINT that comes before the command begins
        signal.pthread_sigmask(signal.SIG_UNBLOCK, POLITE)
        code = 1
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, POLITE)
        facts = {"seconds": time.monotonic() - started, "operations": operations.count}
        new = [name for name in sys.modules if name not in loaded and name.partition(".")[0] != "torch"]
        Path("../report").write_text(json.dumps({**facts, "modules": new}))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Operations:
    """Counts the operations of this process that change files, and kills its group right before the Nth."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0
        self._write, self._fsync = os.write, os.fsync
        os.write, os.fsync = self.write, self.fsync
        sys.addaudithook(self._hear)

    def write(self, fd: int, data: Any) -> int:
        if fd > 2 and self.count + 1 == self.at and self.at % 2:  # torn
            self._write(fd, memoryview(data)[: len(data) // 2])
        self._one_more()
        return self._write(fd, data)

    def fsync(self, fd: int) -> None:
        self._one_more()
        self._fsync(fd)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _AUDITED or (event == "open" and _changes(*arguments)):
            self._one_more()

    def _one_more(self) -> None:
        self.count += 1
        if self.count == self.at:
            os.killpg(0, signal.SIGKILL)


def _changes(path: Any, mode: str | None, flags: int) -> bool:
    return isinstance(path, str | bytes) and bool(flags & _CHANGING) and not os.fsdecode(path).startswith("/dev/")


def forked(action: Callable[[], Any]) -> Any:
    """What it returns, as JSON, from a child: whatever it loads or starts is gone with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writing, "w") as pipe:
                json.dump(action(), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert text, "the child failed"
    return json.loads(text)


def walk(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
