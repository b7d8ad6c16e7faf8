"""A fork server: one process that has everything loaded forks for each case, so that a crash, the memory and the time
of one case touch no other. `Server` is what starts and asks it; run as a script it is that process.

Standard input of it: a case as JSON on a line; standard output: the outcome as JSON on a line.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from fuzz.case import Case, Outcome, lay
from fuzz.oracle import SECONDS

MEMORY = 4 << 30  # bytes of address space beyond what the process has when it starts
WALL = 120.0  # seconds: waiting costs no processor time, and this machine may be busy
_ONE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
TESTS = Path(__file__).parent.parent


class Server:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        environment = os.environ | dict.fromkeys(_ONE, "1")
        paths = filter(None, [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH")])
        environment |= {"PYTHONPATH": os.pathsep.join(paths)}
        words = [sys.executable, "-m", "fuzz.server", self._folder.name]
        self._process = subprocess.Popen(words, stdin=-1, stdout=-1, text=True, env=environment)

    def run(self, case: Case) -> Outcome:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(case.to_json()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the fork server has ended")
        facts = json.loads(line)
        if "fault" in facts:
            raise RuntimeError(f"the case could not be run: {facts['fault']}\n{case.to_json()}")
        return Outcome(**facts)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


def run_case(case: Case, root: Path) -> Outcome:
    """Lay out the files, fork, and see what has become of them."""
    from fuzz.shelf import shelf

    folder = root / "work"
    _remove(folder)
    (folder / "tmp").mkdir(parents=True)
    lay(case, folder, lambda name: shelf(name, root))
    before = _snapshot(folder)
    outcome = forked(case.argv, folder, root, case.stdin)
    after = _snapshot(folder)
    allowed = case.writes if outcome.code else (*case.writes, "tmp/")
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path) and not path.startswith((*allowed, "seqloom-error-")):
            (outcome.changed if path in before else outcome.left).append(path)
    return outcome


def forked(argv: tuple[str, ...], folder: Path, root: Path, stdin: str = "", limited: bool = True) -> Outcome:
    """Run a command in a process of its own."""
    for name, content in (("in", stdin.encode("utf-8", "surrogateescape")), ("out", b""), ("err", b"")):
        (root / name).write_bytes(content)
    child = os.fork()
    if not child:
        _become_the_command(argv, folder, root, limited)
    deadline, status, used = time.monotonic() + (WALL if limited else 900), 0, None
    outcome = Outcome()
    pause = 0.002
    while used is None:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            used = usage
        elif time.monotonic() > deadline:
            outcome.hung = True
            os.killpg(child, signal.SIGKILL)
            _, status, used = os.wait4(child, 0)
        else:
            time.sleep(pause := min(0.05, pause * 1.2))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # whatever it started
    outcome.code = os.waitstatus_to_exitcode(status)
    outcome.signal = max(0, -outcome.code)
    outcome.seconds = used.ru_utime + used.ru_stime
    outcome.out, outcome.err = (
        (root / name).read_bytes()[:200_000].decode("utf-8", "replace") for name in ("out", "err")
    )
    return outcome


def _become_the_command(argv: tuple[str, ...], folder: Path, root: Path, limited: bool) -> None:
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        for number, (name, flags) in enumerate([("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY)]):
            os.dup2(os.open(root / name, flags), number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.environ |= {"TMPDIR": str(folder / "tmp"), "SEQLOOM_CACHE": str(root / "cache"), "HOME": str(root / "home")}
        tempfile.tempdir = None
        if limited:
            resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS) + 2, int(SECONDS) + 5))
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["seqloom", *argv]
        from seqloom.cli._main import main

        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _snapshot(folder: Path) -> dict[str, str]:
    """What is there: the content of each file, the kind of everything else."""
    found = {}
    for path in folder.rglob("*"):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode
        if stat.S_ISREG(mode):
            size = path.lstat().st_size
            content = path.read_bytes() if size < 1 << 22 else str(path.lstat().st_mtime_ns).encode()
            found[name] = f"{size} {hashlib.sha1(content).hexdigest()}"
        elif not stat.S_ISDIR(mode):
            found[name] = str(stat.S_IFMT(mode))
    return found


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _load_everything() -> None:
    """What commands load when they need it, so that they need not do so again in each process."""
    import importlib
    import pkgutil

    import torch

    import seqloom

    torch.set_num_threads(1)
    for found in pkgutil.walk_packages(seqloom.__path__, "seqloom."):
        with suppress(ImportError, SystemExit):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    for name in (
        "pyarrow.parquet",
        "sklearn.linear_model",
        "sacrebleu",
        "rouge_score.rouge_scorer",
        "plotly.graph_objects",
    ):
        with suppress(ImportError):
            importlib.import_module(name)


def _settle() -> None:
    """Comparisons and diagnoses do their jobs in this process, one at a time; conftest.py does the same."""
    from seqloom.compare import comparing
    from seqloom.lab import jobs, pool, worker

    comparing._cores = lambda: 1  # type: ignore[attr-defined]
    jobs.PROBE_STEPS = 5
    pool._Slot.run = lambda slot, job: worker.work(job)  # type: ignore


def serve(root: Path) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints may come between
    _load_everything()
    _settle()
    for name in ("home", "cache"):
        (root / name).mkdir()
    with suppress(BrokenPipeError):  # who asked has ended
        for line in sys.stdin:
            try:
                facts = asdict(run_case(Case.from_json(json.loads(line)), root))
            except Exception as error:
                facts = {"fault": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(facts) + "\n")
            answers.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
