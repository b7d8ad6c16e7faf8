"""/api/runs, /api/comparisons, /api/studies: what is in the folder of runs, live, and nothing outside it."""

from __future__ import annotations

import ast
import builtins
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare_example
import pytest
from api_desk import Desk, client
from starlette.testclient import TestClient
from support import small_fit, text

import seqloom
from seqloom.runs.folder import RunFolder
from seqloom.runs.kept import write_json
from seqloom.runs.lock import locked
from seqloom.serve.api import reading
from seqloom.serve.api.curves import MOST, thinned
from seqloom.serve.api.past import Past
from seqloom.serve.jobs.uploads import Uploads

PACKAGE = Path(seqloom.__file__).parent


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, own_cache: None) -> Path:
    """A folder of runs: one run, one of a job, and a comparison of two seeds and a trial, which is finished."""
    place = tmp_path_factory.mktemp("served")
    (place / "book.txt").write_text(text(3000))
    small_fit(place / "book.txt", place / "runs" / "book~1", "lstm", ["train.steps=6", "train.log_every=1"])
    for name in ("jobs/0123/run", "cmp/runs/lstm/seed-2", "cmp/runs/lstm/seed-10", "cmp/runs/lstm/trial-01"):
        shutil.copytree(place / "runs" / "book~1", place / "runs" / name)
    return place / "runs"


@pytest.fixture
def desk(root: Path, tmp_path: Path) -> TestClient:
    return client(Desk(Past(root), Uploads(tmp_path / "uploads"), None))


@pytest.fixture
def finished(root: Path) -> Iterator[Path]:
    """The comparison has a result."""
    folder = root / "cmp"
    plan = {"task": "language_model", "data": {"train": "/home/ada/book.txt"}, "models": ["lstm"], "seeds": 2}
    write_json(folder / "comparison.json", {"plan": plan | {"budget": {"kind": "minutes", "amount": 5.0}}})
    result = compare_example.example()
    write_json(folder / "result.json", result)
    yield folder
    (folder / "result.json").unlink()
    (folder / "comparison.json").unlink()


def rows(desk: TestClient) -> dict[str, Any]:
    return {row["id"]: row for row in desk.get("/api/runs").json()["runs"]}


def test_every_run_is_listed_with_its_score_and_without_the_trials_of_a_search(
    desk: TestClient, finished: Path
) -> None:
    found = rows(desk)
    assert found.keys() == {"book=7E1", "jobs~0123~run", "cmp~runs~lstm~seed-2", "cmp~runs~lstm~seed-10"}
    row = found["book=7E1"]
    assert (row["task"], row["model"], row["data"], row["status"]) == ("language_model", "lstm", "book.txt", "finished")
    assert row["score"]["name"] == "loss" and row["score"]["better"] == "lower" and row["score"]["value"] > 0
    assert row["parameters"] > 0 and row["step"] == 6 and row["progress"] == 1.0 and row["started"] <= row["ended"]
    assert found["cmp~runs~lstm~seed-2"]["inside"] == "cmp" and row["inside"] is None


def test_a_training_is_followed_while_it_goes_on(desk: TestClient, root: Path) -> None:
    run = root / "live"
    shutil.copytree(root / "book~1", run)
    (run / "summary.json").unlink()
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    try:
        (run / "metrics.jsonl").write_bytes(b"".join(lines[:2]) + b'{"half a li')
        before = rows(desk)["live"]
        with locked(run):
            (run / "metrics.jsonl").write_bytes(b"".join(lines[:-2]))
            after = rows(desk)["live"]
        assert (before["status"], after["status"]) == ("unfinished", "running")
        assert 0 < before["step"] < after["step"] and 0 < before["progress"] < after["progress"] < 1
        assert after["loss"] > 0 and after["score"]["part"] == "valid"
    finally:
        shutil.rmtree(run)
    assert "live" not in rows(desk)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"config": {"task": 3}}', '{"config": NaN}'])
def test_a_damaged_run_is_listed_and_told_without_a_path(desk: TestClient, root: Path, content: str) -> None:
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text(content)
    try:
        assert rows(desk)["broken"]["status"] == "damaged"
        told = desk.get("/api/runs/broken")
        assert told.status_code == 200 and str(root) not in told.text
        assert desk.get("/api/runs/broken/curve").json()["steps"] == []
    finally:
        shutil.rmtree(root / "broken")


def test_one_run_has_its_record_and_its_results(desk: TestClient, root: Path) -> None:
    found = desk.get("/api/runs/book=7E1").json()
    folder = RunFolder(root / "book~1")
    assert found["record"] == folder.record() and found["summary"] == folder.summary() and found["message"] is None
    assert found["run"] == rows(desk)["book=7E1"]


def test_the_curve_has_losses_and_scores_at_their_steps(desk: TestClient) -> None:
    found = desk.get("/api/runs/jobs~0123~run/curve").json()
    assert found["metric"] == "loss" and found["steps"] == [1, 2, 3, 4, 5, 6]
    assert all(value > 0 for value in found["train"]) and len(found["valid"]) == 6 and any(found["valid"])


def test_a_long_curve_is_thinned_without_losing_its_spikes(desk: TestClient, root: Path, tmp_path: Path) -> None:
    log = root / "jobs" / "0123" / "run" / "metrics.jsonl"
    before = log.read_bytes()
    entries = [{"step": n, "train": {"loss": 999.0 if n == 12_345 else 2.0 + n % 7}} for n in range(1, 30_001)]
    entries += [{"step": n, "valid": {"loss": float("nan") if n == 10 else 1.0}} for n in range(1, 3000)]
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    try:
        answer = desk.get("/api/runs/jobs~0123~run/curve")
    finally:
        log.write_bytes(before)
    found = answer.json()
    assert "NaN" not in answer.text and 1000 < len(found["steps"]) <= MOST
    assert max(filter(None, found["train"])) == 999.0 and (found["steps"][0], found["steps"][-1]) == (1, 30_000)


@pytest.mark.parametrize("count", [0, 1, 3, 9, 10, 11, 999, 100_000])
def test_thinning_keeps_the_ends_the_order_and_the_limit(count: int) -> None:
    points = [(float(n), float((n * 7919) % 101)) for n in range(count)]
    kept = thinned(points, 10)
    assert len(kept) == min(count, len(kept)) <= 10 and kept == sorted(kept)
    assert not points or (kept[0], kept[-1]) == (points[0], points[-1])


def test_a_comparison_is_listed_with_its_winner_and_its_runs(desk: TestClient, finished: Path) -> None:
    (row,) = desk.get("/api/comparisons").json()["comparisons"]
    assert (row["id"], row["kind"], row["status"], row["data"]) == ("cmp", "comparison", "finished", "book.txt")
    assert row["runs"] == ["cmp~runs~lstm~seed-2", "cmp~runs~lstm~seed-10"] and row["budget"] == "minutes=5"
    assert row["best"] in row["models"] and row["score"]["value"] is not None and row["report"]
    one = desk.get("/api/comparisons/cmp").json()
    assert one["comparison"] == row and one["plan"]["seeds"] == 2 and one["result"]["entries"]


def test_a_report_is_made_anew_and_sent_with_a_sandbox(desk: TestClient, finished: Path) -> None:
    """What is in the file report.html is never sent: it may be anybody's."""
    (finished / "report.html").write_text("<script>alert(1)</script>")
    sent = desk.get("/api/comparisons/cmp/report")
    policy = sent.headers["content-security-policy"]
    assert sent.status_code == 200 and "alert(1)" not in sent.text and "<h1" in sent.text
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'sha256-")
    assert policy.endswith("; frame-ancestors 'self'") and "unsafe-inline'; img-src data:" in policy
    assert "script-src 'unsafe" not in policy and sent.headers["x-content-type-options"] == "nosniff"


def test_a_comparison_without_a_result_has_no_report_yet(desk: TestClient, root: Path) -> None:
    (root / "young").mkdir()
    (root / "young" / "comparison.json").write_text("{}")
    try:
        assert desk.get("/api/comparisons/young/report").status_code == 409
        (root / "young" / "result.json").write_text('{"entries": ')
        sent = desk.get("/api/comparisons/young/report")
        assert sent.status_code == 409 and str(root) not in sent.text
        row = next(row for row in desk.get("/api/comparisons").json()["comparisons"] if row["id"] == "young")
        assert row["status"] == "damaged" and desk.get("/api/comparisons/young").status_code == 200
    finally:
        shutil.rmtree(root / "young")


def test_studies_are_listed_with_what_was_measured_here(desk: TestClient, root: Path) -> None:
    (root / "studies").mkdir()
    source = next((PACKAGE.parent / "docs" / "studies" / "results").glob("*.json"))
    try:
        shutil.copy(source, root / "studies")
        (root / "studies" / "clipping.json").write_text("{")
        found = {row["name"]: row for row in desk.get("/api/studies").json()["studies"]}
    finally:
        shutil.rmtree(root / "studies")
    measured = found[source.stem]
    assert measured["result"]["finding"]["verdict"] and measured["what"] and measured["message"] is None
    assert found["clipping"]["result"] is None and "--fresh" in found["clipping"]["message"]
    assert all(row["result"] is None for name, row in found.items() if name not in (source.stem, "clipping"))


def hostile() -> Iterator[str]:
    """5,000 ids, as they are written in an address."""
    up = [
        "..",
        "%2e%2e",
        ".%2e",
        "%252e%252e",
        "..%00",
        "．．",
        "%c0%ae%c0%ae",
        "....",
        "..;",
        "%uff0e%uff0e",
        "~",
        ".",
    ]
    slash = ["/", "%2f", "%5c", "%252f", "\\", "//", "~", "%c0%af", "%ef%bc%8f", "/./"]
    goals = ["secret", "secret/run.json", "etc/passwd", "secret%00.json", "run", "secret~", "proc/self/environ"]
    wraps = ["{}", "~{}", "{}~", "book=7E1/{}", "jobs~{}", "/{}"]
    for wrap in wraps:
        for dots in up:
            for cut in slash:
                for goal in goals:
                    yield wrap.format((dots + cut) * (1 + len(goal) % 4) + goal)


def test_no_id_leads_outside_the_folder(desk: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the answer is the same whether there is something outside or not."""
    secret = root.parent / "secret"
    shutil.copytree(root / "book~1", secret)
    opened: list[str] = []
    real = builtins.open, os.open

    def noted(which: int) -> Any:
        def call(path: Any, *rest: Any, **named: Any) -> Any:
            opened.append(os.fsdecode(path) if not isinstance(path, int) else "")
            return real[which](path, *rest, **named)

        return call

    paths = list(dict.fromkeys(hostile()))
    assert len(paths) >= 5000
    monkeypatch.setattr(builtins, "open", noted(0))
    monkeypatch.setattr(os, "open", noted(1))
    try:
        answers = []
        for number, path in enumerate(paths):
            kind, tail = (("runs", ""), ("runs", "/curve"), ("comparisons", "/report"), ("uploads", ""))[number % 4]
            sent = desk.request("DELETE" if kind == "uploads" else "GET", f"/api/{kind}/{path}{tail}")
            answers.append((sent.status_code, "secret" in sent.text or str(root) in sent.text))
        outside = [path for path in opened if path and not Path(os.path.realpath(path)).is_relative_to(root)]
        assert not [path for path in outside if "secret" in path or "/etc" in path or "/proc" in path]
        assert {status for status, _ in answers} <= {404, 405} and not any(told for _, told in answers)
        assert secret.is_dir()
        here, gone = (desk.get(f"/api/runs/..%2f{name}") for name in ("secret", "nothing"))
        assert (here.status_code, here.content) == (gone.status_code, gone.content)
    finally:
        shutil.rmtree(secret)


def test_a_link_out_of_the_folder_is_not_followed(desk: TestClient, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "book~1", tmp_path / "elsewhere")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    try:
        assert "link" not in rows(desk) and desk.get("/api/runs/link").status_code == 404
    finally:
        (root / "link").unlink()


def test_which_scores_are_better_when_higher_is_what_the_tasks_say() -> None:
    higher, lower = set(), set()
    for path in (PACKAGE / "tasks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Score":
                third = node.args[2] if len(node.args) > 2 else None
                named = [word.value for word in node.keywords if word.arg == "higher_is_better"]
                found = [*filter(None, [third]), *named]
                (higher if found and ast.literal_eval(found[0]) else lower).add(ast.literal_eval(node.args[0]))
    assert higher == reading.HIGHER and not higher & lower


def test_the_routes_load_no_torch(root: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, 'tests'); from pathlib import Path; from api_desk import *\n"
        f"runs = Path({str(root)!r})\n"
        "desk = client(Desk(Past(runs), Uploads(runs.parent / 'uploads'), None))\n"
        "paths = ['runs', 'runs/jobs~0123~run', 'runs/jobs~0123~run/curve', 'comparisons', 'studies', 'uploads']\n"
        "for path in paths: assert desk.get('/api/' + path).status_code == 200, path\n"
        "assert desk.get('/api/jobs').status_code == 503\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
