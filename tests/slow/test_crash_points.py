"""Real kills, real mounts: the process dies at every system call of a save, the disk is full, the folder read-only.

Needs strace, and the right to make a private mount namespace (root, or unprivileged user namespaces).
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from faults import Event, damaged, order_violations, remove_in_plain_sight
from test_run_folder import check_new_runs, check_one_winner

from seqloom.runs import durable
from seqloom.runs.folder import RunFolder

KEEP, BEST = 2, 1
CALLS = "?mkdir,?mkdirat,openat,write,fsync,?rename,?renameat,?renameat2,?unlink,?unlinkat,?rmdir,close,ftruncate,flock"
LINE = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)")


def save(path: Path, acknowledge: Callable[[int], None]) -> None:
    """What is watched, and killed: five saves with pruning, one of them of the same step, two of the model."""
    run = RunFolder(path)
    with run.lock():
        for step in (3, 4, 5, 5, 6):
            run.log({"step": step})
            run.save_checkpoint(step, {"weights": b"%d" % step * 999, "state.json": b"%d" % step}, KEEP, BEST)
            acknowledge(step)
        run.publish_model({"weights": b"6" * 999})
        run.publish_model({"weights": b"7" * 999})
        run.write_summary({"steps": 6})


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints 1 and 2."""
    run = RunFolder(tmp_path_factory.mktemp("before") / "run")
    with run.lock():
        run.write_record({"task": "t"})
        for step in (1, 2):
            run.log({"step": step})
            run.save_checkpoint(step, {"weights": b"%d" % step * 999}, KEEP, BEST)
    return run.path


def watched(path: Path, log: Path, *strace: str) -> tuple[int, list[int]]:
    """Save in a forked child under strace: how it ended, and what it acknowledged."""
    go, hear = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # whoever wants may trace this process
            os.write(hear[1], b"0")
            os.read(go[0], 1)
            save(path, lambda step: os.write(hear[1], b"%d" % step) and None)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(hear[1])
    os.read(hear[0], 1)
    command = ["strace", "-y", "-p", str(child), "-o", str(log), "-e", f"trace={CALLS}", *strace]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert "attached" in tracer.stderr.readline()
        os.write(go[1], b"0")
        status = os.waitpid(child, 0)[1]
    acknowledged = [int(digit) for digit in os.read(hear[0], 100).decode()]
    for end in (*go, hear[0]):
        os.close(end)
    return os.waitstatus_to_exitcode(status), acknowledged


def calls(log: Path) -> list[tuple[str, str, int]]:
    matches = (LINE.match(line) for line in log.read_text().splitlines())
    return [(match[1], match[2], int(match[3])) for match in matches if match]


def crash_points(log: Path) -> list[tuple[str, int]]:
    """(call, N): the Nth such call, for every call that saving makes."""
    return [(name, n + 1) for name, count in Counter(name for name, _, _ in calls(log)).items() for n in range(count)]


def laws(path: Path, acknowledged: list[int]) -> list[str]:
    run = RunFolder(path)
    found = damaged(path / "checkpoints")
    seen = [step for step, _ in run.checkpoints()]
    newest_ones = sorted({*seen, *acknowledged})[-KEEP:]  # one that was not acknowledged may be there, whole
    found += [f"checkpoint {step} is gone" for step in {*newest_ones, BEST} & {*acknowledged} if step not in seen]
    newest = run.newest_whole(found.append)
    if newest is None or newest[0] < acknowledged[-1]:
        found.append(f"{newest} found, {acknowledged[-1]} was acknowledged")
    logged = [entry["step"] for entry in run.metrics()]
    if logged[: len(acknowledged)] != acknowledged:
        found.append(f"log has {logged}, {acknowledged} were acknowledged")
    if run.summary() and (run.model_files() / "weights").read_bytes() != b"7" * 999:
        found.append("an old model is there")
    if (model := durable.locate(path / "model")).is_dir():
        durable.verify(model)
    return found


def crash(before: Path, work: Path, call: str, n: int) -> list[str]:
    path = work / "run"
    shutil.copytree(before, path)
    ended, acknowledged = watched(path, work / "log", "-e", f"inject={call}:signal=KILL:when={n}")
    found = [] if ended == -signal.SIGKILL else [f"not killed: {ended}"]
    found += laws(path, [1, 2, *acknowledged])
    with RunFolder(path).lock():
        found += laws(path, [1, 2, *acknowledged])
        found += [f"left behind: {left}" for left in path.rglob(".seqloom-*")]
    shutil.rmtree(path)
    return [f"killed at {call} {n}: {violation}" for violation in found]


def points_of_a_whole_save(before: Path, work: Path) -> list[tuple[str, int]]:
    shutil.copytree(before, work / "whole")
    assert watched(work / "whole", work / "whole.log") == (0, [3, 4, 5, 5, 6])
    return crash_points(work / "whole.log")


def test_killed_at_any_system_call_of_a_save_nothing_is_lost(before, tmp_path):
    started = time.monotonic()
    points = points_of_a_whole_save(before, tmp_path)
    violations = [violation for point in points for violation in crash(before, tmp_path, *point)]
    seconds = time.monotonic() - started
    print(f"{len(points)} crash points in {seconds:.0f} s: {Counter(name for name, _ in points)}")
    assert violations == []
    assert len(points) >= 200
    assert seconds <= 60


def test_the_check_notices_pruning_in_plain_sight(before, tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "remove", remove_in_plain_sight)
    points = [point for point in points_of_a_whole_save(before, tmp_path) if point[0].startswith("unlink")]
    assert any("damaged" in violation for point in points for violation in crash(before, tmp_path, *point))


def events(log: Path) -> list[Event]:
    found: list[Event] = []
    for name, arguments, result in calls(log):
        if result < 0:
            continue
        if name.startswith("rename"):
            source, target = re.findall(r'"([^"]*)"', arguments)
            found.append(("rename", source, target))
        elif name in ("write", "fsync") and (opened := re.match(r"\d+<([^>]*)>", arguments)):
            found.append((name, opened[1]))
        elif name.startswith("unlink") or name == "rmdir":
            found.append(("unlink", re.findall(r'"([^"]*)"', arguments)[0]))
    return found


def test_everything_reaches_the_disk_in_order(before, tmp_path, monkeypatch):
    shutil.copytree(before, tmp_path / "run")
    watched(tmp_path / "run", tmp_path / "log")
    seen = events(tmp_path / "log")
    assert sum(event[0] == "rename" and ".seqloom-tmp-" in event[1] for event in seen) == 5 + 2 + 1
    assert order_violations(seen) == []
    metrics = str(tmp_path / "run" / "metrics.jsonl")
    written = [event[0] for event in seen if event[1] == metrics]
    assert written == ["write", "fsync"] * 5
    monkeypatch.setattr(durable, "sync_folder", lambda folder: None)
    watched(tmp_path / "run", tmp_path / "mutant")
    assert len(order_violations(events(tmp_path / "mutant"))) >= 5 + 2 + 1


def test_a_log_is_readable_after_100_kills_at_random_moments(tmp_path):
    generator = random.Random(0)
    run = RunFolder(tmp_path)
    run.save_checkpoint(0, {"state": b""}, keep=1, best=None)
    last = -1
    for _ in range(100):
        writer = os.fork()
        if writer == 0:
            try:
                with run.lock():
                    run.trim_metrics(last)
                    for step in range(last + 1, 10**9):
                        run.log({"step": step, "loss": 1 / (step + 1), "text": "x" * generator.randrange(5000)})
            finally:
                os._exit(1)
        time.sleep(generator.random() * 0.02)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        steps = [entry["step"] for entry in run.metrics()]
        assert steps == list(range(len(steps))) and len(steps) > last
        last = max(-1, len(steps) - 3)  # as from a checkpoint a little before
    assert last > 100


def in_a_namespace(script: str, path: Path) -> str:
    """Run a script that may mount things nobody else sees."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    command = [*unshare, sys.executable, "-c", script, str(path)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


FULL = """
import os, subprocess, sys
from pathlib import Path
from seqloom.core.errors import RunError
from seqloom.runs.folder import RunFolder
path = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path], check=True)
run = RunFolder(path / "run")
files = {"weights": lambda out: [out.write(os.urandom(1000)) for _ in range(400)], "state": b"x" * 1000}
with run.lock():
    run.save_checkpoint(1, files, 3, 1)
    run.save_checkpoint(2, files, 3, 1)
    try:
        run.save_checkpoint(3, files, 3, 1)
    except RunError as error:
        print(error)
assert [step for step, _ in run.checkpoints()] == [2, 1]
assert run.checkpoint(1) and run.checkpoint(2)
assert not list(path.rglob(".seqloom-*"))
subprocess.run(["mount", "-o", "remount,size=2m", path], check=True)
with run.lock():
    run.save_checkpoint(3, files, 3, 1)
assert run.newest_whole(print)[0] == 3
"""


def test_a_full_disk_costs_nothing_but_the_checkpoint_that_did_not_fit(tmp_path):
    said = in_a_namespace(FULL, tmp_path)
    folder = tmp_path / "run" / "checkpoints" / "step-00000003"
    needed = "no space left on the device (401000 bytes needed); free some space and run the same command again"
    assert said == f"cannot write {folder}: {needed}\n"


READ_ONLY = """
import subprocess, sys
from pathlib import Path
from seqloom.core.errors import RunError
from seqloom.runs.folder import RunFolder
path = Path(sys.argv[1])
subprocess.run(["mount", "--bind", path, path], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
for run in (RunFolder(path / "old"), RunFolder(path / "new")):
    try:
        with run.lock():
            print("locked")
    except RunError as error:
        print(error)
print(RunFolder(path / "old").record())
"""


def test_a_read_only_folder_is_named_before_anything_is_done(tmp_path):
    old = RunFolder(tmp_path / "old")
    with old.lock():
        old.write_record({"readable": True})
    said = in_a_namespace(READ_ONLY, tmp_path).splitlines()
    reason = "read-only file system; choose a folder that can be written to"
    lines = [f"cannot write {tmp_path / name}: {reason}" for name in ("old", "new")]
    assert said == [*lines, "{'readable': True}"]


def test_of_50_writers_one_wins(tmp_path):
    check_one_winner(tmp_path / "run", (50, 20))


def test_20_processes_make_200_runs(tmp_path):
    check_new_runs(tmp_path / "runs", callers=20, each=10)
