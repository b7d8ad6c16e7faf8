"""The process of one job: started in a session of its own, its lines read, ended together with its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

MARK = "SEQLOOM_JOBS"  # in the environment of every process that a job has started: the name of its store
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")
_LONGEST = 4096  # bytes of a line
_PATIENCE = 5.0  # seconds for killed processes to be gone


class Child:
    def __init__(self, words: Sequence[str], folder: Path, mark: str, say: Callable[[str], None]) -> None:
        """`words`: program and arguments; `say`: gets every line that it writes to standard error."""
        tied = [sys.executable, "-m", "seqloom.serve.jobs.tied", str(os.getpid()), *words]
        self.said = ""  # the last line
        self._say = say
        self._process = subprocess.Popen(
            tied, cwd=folder, env=environment(mark), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, name="lines of a job", daemon=True)
        self._reader.start()

    def ended(self) -> int | None:
        """Its exit code once it has ended, and nothing that it started is left; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self.signal(signal.SIGKILL)  # what it left, which also closes the pipe
            self._reader.join(_PATIENCE)
        return code

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))
            return True
        return False

    def _read(self) -> None:
        assert self._process.stderr
        with self._process.stderr as lines:
            while line := lines.readline(_LONGEST):
                text = "".join(c if c.isprintable() else " " for c in line.decode(errors="replace")).rstrip()
                if text:
                    self.said = text
                    self._say(text)


def kill_left(mark: str) -> int:
    """End the processes that a killed server left, by the mark in their environment; how many there were. Only where
    there is /proc: elsewhere a job that finds its folder in use is tried again later."""
    started, found = time.monotonic(), set()
    while left := _marked(mark):
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        found |= left
        if time.monotonic() - started > _PATIENCE:
            break
        time.sleep(0.02)
    return len(found)


def _marked(mark: str) -> set[int]:
    wanted, found = f"{MARK}={mark}".encode(), set()
    with suppress(OSError):
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdecimal() and wanted in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.add(int(name))
    return found - {os.getpid()}


def environment(mark: str = "") -> dict[str, str]:
    """That of the server without its secrets, and such that no file in the folder of a job can be imported."""
    kept = {name: value for name, value in os.environ.items() if not any(word in name.upper() for word in _SECRET)}
    package = str(Path(__file__).parents[3])  # also where seqloom is not installed but on the path
    paths = [package, *filter(None, kept.get("PYTHONPATH", "").split(os.pathsep))]
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}  # never the current folder
    return kept | safe | {MARK: mark}
