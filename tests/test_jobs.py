"""Jobs without HTTP: what is asked for, the store, the runner, and what is left after a server was killed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_desk import FAKE, Desk, opened
from jobs_killing import Campaign, check
from pydantic import ValidationError

from seqloom.core.errors import RunError, UserError
from seqloom.runs.folder import RunFolder
from seqloom.runs.lock import InUse
from seqloom.serve.api.past import Past
from seqloom.serve.jobs.request import Order
from seqloom.serve.jobs.runner import Runner
from seqloom.serve.jobs.store import ENDED, FILE, LINES, Conflict, Job, Store

COMPARE = {"kind": "compare", "data": "sample:sine", "models": ["gru", "lstm"]}
FIT = {"kind": "fit", "data": "sample:sine", "task": "forecasting", "model": "gru"}


def order(**changes: Any) -> Order:
    return Order.model_validate(COMPARE | changes)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened(tmp_path) as found:
        yield found


def ended(runner: Runner, *jobs: Job, seconds: float = 30.0) -> list[Job]:
    """These jobs, when all of them have ended."""
    until = time.monotonic() + seconds
    while True:
        found = [runner.store.job(job.id) or job for job in jobs]
        if all(job.state in ENDED for job in found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.02)


def does(desk: Desk, **changes: Any) -> Job:
    assert desk.jobs
    return ended(desk.jobs, desk.jobs.submit(order(**changes))[0])[0]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "eval"}, {"kind": 3}, {"data": "/etc/passwd"}, {"data": "upload:../../etc"}, {"data": "sample:none"},
        {"data": "upload:" + "a" * 31}, {"data": "sample:sine\n"}, {"task": "--help"}, {"task": "nothing"},
        {"models": ["gru", "gru"]}, {"models": ["gru:from=weights:x"]}, {"models": ["-o"]}, {"models": ["gru"] * 13},
        {"models": "gru"}, {"model": "gru"}, {"budget": "steps=3"}, {"budget": "minutes=0"}, {"budget": "minutes=-1"},
        {"budget": "minutes=1e9"}, {"budget": "minutes=nan"}, {"budget": "tokens=1.5"}, {"budget": "tokens=٣"},
        {"budget": "minutes=5 --on=ray"}, {"params": "0"}, {"params": "800k;"}, {"trials": 51}, {"trials": -1},
        {"trials": "2"}, {"trials": True}, {"seeds": 0}, {"seeds": 2**70}, {"seed": 2**31}, {"out": "/tmp/x"},
        {"overrides": ["train.steps=1"]}, {"columns": {"text": ""}}, {"columns": {"--on": "ray"}},
        {"columns": {"text": "a\nb"}}, {"key": ""}, {"key": "a b"}, {"key": "k" * 101}, {"key": "é"},
    ],
)  # fmt: skip
def test_what_is_no_order_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        order(**change)


@pytest.mark.parametrize(
    "change", [{"model": None}, {"task": None}, {"seeds": 2}, {"params": "8k"}, {"budget": "bytes=1M"}]
)
def test_what_does_not_belong_to_fit_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Order.model_validate(FIT | change)


def test_an_order_becomes_words_of_which_each_value_stays_with_its_option() -> None:
    asked = order(budget="tokens=1.5M", params="800k", trials=0, seeds=2, seed=3, task="forecasting")
    words = asked.model_copy(update={"columns": {"text": "--on"}}).command("/place/--data.csv")
    assert words == [
        "compare", "--data=/place/--data.csv", "--out=run", "--json", "--task=forecasting", "--columns=text=--on",
        "--models=gru,lstm", "--budget=tokens=1500000", "--params=800k", "--trials=0", "--seeds=2", "--seed=3",
    ]  # fmt: skip
    fit = Order.model_validate(FIT | {"budget": "minutes=0.5", "seed": 2}).command("sample:sine")
    assert fit[4:] == ["--task=forecasting", "--model=gru", "-o", "train.minutes=0.5", "-o", "train.seed=2"]


def test_the_same_key_is_the_same_job_and_never_another(desk: Desk) -> None:
    assert desk.jobs
    first, new = desk.jobs.submit(order(key="k"))
    again, newer = desk.jobs.submit(order(key="k"))
    assert (new, newer) == (True, False) and again.id == first.id
    with pytest.raises(Conflict):
        desk.jobs.submit(order(key="k", seeds=2))
    other, _ = desk.jobs.submit(order())
    assert len({first.id, other.id}) == 2 and len(list((desk.past.root / "jobs").iterdir())) == 2
    assert [job.state for job in ended(desk.jobs, first, other)] == ["done", "done"]


def test_a_job_that_fails_says_why_in_one_line_without_a_path(desk: Desk) -> None:
    upload = desk.uploads.begin("bad.csv")
    upload.write(b"x")
    job = does(desk, seeds=13, data=f"upload:{upload.finish()['id']}")
    assert (job.state, job.code) == ("failed", 2)
    assert job.message == "bad.csv: nothing can be learned from it; choose other data"
    assert desk.jobs and not [line for _, line in desk.jobs.store.lines(job.number) if str(desk.past.root) in line]


def test_a_job_that_is_killed_says_so(desk: Desk) -> None:
    job = does(desk, seeds=14)
    assert (job.state, job.code) == ("failed", -9) and "out of memory" in (job.message or "")


def test_a_running_job_is_cancelled_and_so_is_one_that_waits(desk: Desk) -> None:
    assert desk.jobs
    long, _ = desk.jobs.submit(order(seeds=15))
    waiting, _ = desk.jobs.submit(order())
    while not desk.jobs.store.lines(long.number):
        time.sleep(0.02)
    assert desk.jobs.cancel(waiting.id).state == "cancelled"  # type: ignore[union-attr]
    desk.jobs.cancel(long.id)
    assert [job.state for job in ended(desk.jobs, long, waiting)] == ["cancelled", "cancelled"]
    assert desk.jobs.cancel("nothing") is None
    assert desk.jobs.cancel(long.id).state == "cancelled"  # type: ignore[union-attr]


def test_the_last_lines_are_kept_without_control_characters(desk: Desk) -> None:
    job = does(desk, seeds=16)
    assert desk.jobs
    lines = desk.jobs.store.lines(job.number)
    assert job.state == "done" and len(lines) == LINES and "\x1b" not in "".join(text for _, text in lines)
    assert lines[-1] == (431, "line 429  [31mred")


def test_a_job_that_has_ended_cannot_end_again(desk: Desk) -> None:
    job = does(desk)
    assert desk.jobs
    with pytest.raises(sqlite3.IntegrityError, match="has ended"):
        desk.jobs.store.end(job.number, "failed", 1, None)
    assert desk.jobs.store.job(job.id) == job


def test_one_server_has_the_store(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(InUse, match="in use by process"):
        Store(tmp_path / "state")


def test_a_damaged_store_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        does(desk)
    path = tmp_path / "state" / FILE
    path.write_bytes(b"not a database at all, " * 300)
    with pytest.raises(RunError, match="move it away"):
        Store(tmp_path / "state")
    path.unlink()
    Store(tmp_path / "state").close()


def test_a_full_disk_loses_nothing_and_is_over_when_there_is_room(desk: Desk) -> None:
    assert desk.jobs
    base = desk.jobs.store._base
    (pages,) = base.execute("PRAGMA page_count").fetchone()
    base.execute(f"PRAGMA max_page_count = {pages}")
    taken = []
    with pytest.raises(sqlite3.OperationalError, match="full"):
        for number in range(100):
            taken.append(
                desk.jobs.submit(order(key=f"key-{number}", columns=dict.fromkeys("abcdefghijklmnopqrst", "x" * 200)))[
                    0
                ]
            )
    assert len(list((desk.past.root / "jobs").iterdir())) == len(desk.jobs.store.jobs(1000))
    base.execute("PRAGMA max_page_count = 1000000")
    taken.append(desk.jobs.submit(order())[0])
    assert {job.state for job in ended(desk.jobs, *taken)} == {"done"}


def test_a_file_beside_a_job_is_never_imported(tmp_path: Path) -> None:
    """A program looks for modules in its folder, where the files of others are."""
    code = "import sys, os; import json, random; sys.exit('hostile' in dir(random))"
    with opened(tmp_path, program=[sys.executable, "-c", code], start=False) as desk:
        assert desk.jobs
        job, _ = desk.jobs.submit(order())
        (desk.past.root / "jobs" / job.id / "random.py").write_text("hostile = True")
        desk.jobs.start()
        assert ended(desk.jobs, job)[0].state == "done"


def test_a_child_has_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_TOKEN", "canary")
    code = "import os, sys; sys.exit('canary' in os.environ.values())"
    with opened(tmp_path, program=[sys.executable, "-c", code]) as desk:
        assert does(desk).state == "done"


def test_the_data_of_a_job_stays_when_the_upload_is_deleted(tmp_path: Path) -> None:
    with opened(tmp_path, start=False) as desk:
        assert desk.jobs
        upload = desk.uploads.begin("../../my data.csv")
        upload.write(b"a,b\n1,2\n")
        id = upload.finish()["id"]
        job, _ = desk.jobs.submit(order(data=f"upload:{id}"))
        assert desk.uploads.remove(id)
        with pytest.raises(UserError, match="send the file first"):
            desk.jobs.submit(order(data=f"upload:{id}"))
        desk.jobs.start()
        assert ended(desk.jobs, job)[0].state == "done"
        folder = desk.past.root / "jobs" / job.id
        assert (folder / "data" / "my data.csv").read_bytes() == b"a,b\n1,2\n"
        assert f"--data={(folder / 'data' / 'my data.csv').resolve()}" in (folder / "run" / "words.txt").read_text()


def test_what_ran_when_the_server_stopped_is_done_by_the_next(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        assert desk.jobs
        job, _ = desk.jobs.submit(order(seeds=15))
        while not desk.jobs.store.lines(job.number):
            time.sleep(0.02)
    with opened(tmp_path, program=[*FAKE, "--seeds=1"]) as desk:
        assert desk.jobs
        (again,) = ended(desk.jobs, job)
        assert (again.state, again.attempts) == ("done", 2)


@pytest.mark.long
def test_no_job_is_lost_or_done_twice_when_the_server_is_killed(tmp_path: Path, own_cache: None) -> None:
    """One of them trains, and is in the list of runs; tests/slow/test_jobs_kills.py has a hundred and ten kills."""
    campaign = Campaign(tmp_path, jobs=6, real=1, kills=2)
    campaign.run(seconds=120)
    check(campaign, real=1)
    (row,) = Past(tmp_path / "runs").runs()
    (id,) = [row["id"] for row in campaign.rows() if row["kind"] == "fit"]
    assert (row["id"], row["status"], row["data"]) == (f"jobs~{id}~run", "finished", "book.txt")
    assert RunFolder(tmp_path / "runs" / "jobs" / id / "run").is_whole()


def test_a_child_ends_with_its_server(tmp_path: Path) -> None:
    host = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "jobs_host.py"), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert host.stdin and host.stdout
    host.stdout.readline()
    host.stdin.write(json.dumps(COMPARE | {"seeds": 15}) + "\n")
    host.stdin.flush()
    host.stdout.readline()
    campaign = Campaign(tmp_path, jobs=0, real=0, kills=1)
    until = time.monotonic() + 30
    while not campaign.left() or "running" not in campaign.states():
        assert time.monotonic() < until
        time.sleep(0.02)
    host.kill()
    host.communicate()
    while campaign.left():
        assert time.monotonic() < until
        time.sleep(0.02)
