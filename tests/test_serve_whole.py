"""The whole server as a user starts it, over real models: what only the parts together can get wrong."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import compare_example
import pytest
from serve_process import GOLDEN, ROOT, Served, settled
from serve_toys import until

from seqloom.retrieve.index import index
from seqloom.runs.kept import write_json
from seqloom.serve.jobs.store import ENDED

pytestmark = pytest.mark.long
CANARY = "canary-4d1f"
ODD = "评论 100%"  # the folder of a run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, own_cache: None) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "documents").mkdir()
    (folder / "documents" / "terms.txt").write_text("The guarantee lasts three years.\n\nOrders take two days.\n")
    index(folder / "documents", folder / "notes", encoder=None).close()
    plan = {"task": "language_model", "data": {"train": "book.txt"}, "models": ["lstm"], "seeds": 2}
    (folder / "runs" / "cmp").mkdir(parents=True)
    write_json(
        folder / "runs" / "cmp" / "comparison.json", {"plan": plan | {"budget": {"kind": "minutes", "amount": 5.0}}}
    )
    write_json(folder / "runs" / "cmp" / "result.json", compare_example.example())
    runs = ["language_model", "question_answering", "forecasting", f"classification={ODD}"]
    found = Served(folder, runs, "--index=notes")
    yield found
    assert found.stop() == 0
    assert "Traceback" not in found.said(), found.said()


def refused(reply: Any, status: int = 400) -> str:
    """Why: in one line, which names fields and no options of the command line."""
    assert reply.status == status and len(reply.body) <= 2048, reply
    said = str(reply.json()["error"]["message"])
    assert "--" not in said and "/tmp" not in said and "Traceback" not in said, said
    return said


def test_each_task_predicts_from_rows_texts_and_files(server: Served) -> None:
    asked = {"question": "who sails", "passage": "the captain sails to York"}
    found = server.model("question_answering", "predict", rows=[asked, asked]).json()
    assert found["columns"] == ["question", "passage"] and len(found["rows"]) == 2 and "answer" in found["rows"][0]
    upload = server.upload("评论.csv", "text\n你好\ngood morning\n".encode()).json()
    assert upload["name"] == "评论.csv"
    name = ODD.replace("%", "_")  # which a URL can hold
    from_file = server.model(name, "predict", upload=upload["id"]).json()["rows"]
    texts = server.model(name, "predict", texts=["你好", "good morning"]).json()["rows"]
    assert [row["label"] for row in from_file] == [row["label"] for row in texts]
    series = [{"date": f"2026-01-{n:02}", "sold": n % 5, "price": 2.5} for n in range(1, 29)]
    assert server.model("forecasting", "predict", rows=series).json()["rows"]


@pytest.mark.parametrize(
    ("name", "op", "body", "said"),
    [
        ("question_answering", "predict", {"texts": ["who"]}, "passage: missing"),
        ("question_answering", "explain", {"text": "who"}, "passage: missing"),
        ("question_answering", "explain", {"text": "a", "passage": "b", "second": "c"}, "second: this"),
        ("language_model", "explain", {"text": ""}, "text: empty"),
        ("language_model", "explain", {"text": "a", "target": "b", "against": "b"}, "against 'b': the same as target"),
        ("language_model", "explain", {"text": "a", "views": ["patching"]}, "give patch_with"),
        ("language_model", "explain", {}, "input: give a text or a row"),
        ("language_model", "predict", {"texts": ["a"]}, "it can generate"),
        ("forecasting", "explain", {"row": {"sold": 1}}, "row: a table cannot be explained here"),
        ("forecasting", "predict", {"rows": [{"text": "a"}]}, "no column 'sold'"),
    ],
)
def test_what_a_model_refuses_names_fields_and_not_options(server: Served, name: str, op: str, body: Any, said: str):
    assert said in refused(server.model(name, op, **body))


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"kind": "x"}, "kind", "should be 'fit' or 'compare'"),
        ({"kind": "fit", "data": "sample:sine", "model": "gru"}, None, "task: is needed"),
        ({"kind": "fit", "data": "sample:sine", "task": "forecasting", "model": "no"}, None, "GET /api/jobs/choices"),
        (
            {"kind": "compare", "data": "sample:sine", "budget": "minutes=0"},
            None,
            "budget: minutes must be more than 0",
        ),
        ({"kind": "compare", "data": "sample:sine", CANARY: 1}, None, "an unknown field"),
        ([CANARY], None, "body: "),
    ],
)
def test_an_order_that_is_refused_says_what_is_wrong(server: Served, body: Any, param: str | None, said: str) -> None:
    reply = server.ask("POST", "/api/jobs", body)
    assert said in refused(reply) and reply.json()["error"]["param"] == param and CANARY.encode() not in reply.body


def test_what_is_offered_is_no_job_and_a_report_may_stand_in_a_frame(server: Served) -> None:
    assert server.ask("GET", "/api/jobs/choices").json() == {"tasks": [], "models": [], "samples": [], "budgets": {}}
    assert server.ask("GET", "/api/jobs/choosing").status == 404
    report = server.ask("GET", "/api/comparisons/cmp/report")
    explained = server.model("language_model", "explain", text="hello").json()["page"]
    answered = server.post("/api/indexes/notes/ask", question="How long is the guarantee?").json()["page"]
    for found in (report, server.ask("GET", explained), server.ask("GET", answered)):
        policy = found.headers["content-security-policy"]
        assert found.status == 200 and policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
        assert "frame-ancestors 'self'" in policy and "default-src 'none'" in policy
        assert found.headers["x-frame-options"] == "SAMEORIGIN" and found.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/api/comparisons/cmp", "/api/runs", "/nosuch", "/v1/models"):
        assert server.ask("GET", path).headers["x-frame-options"] == "DENY"


def test_a_job_runs_to_its_end_and_its_events_tell_of_it(server: Served) -> None:
    upload = server.upload(f"{CANARY}.csv", b"x").json()["id"]
    order = {"kind": "fit", "data": f"upload:{upload}", "task": "forecasting", "model": "gru"}
    job = server.ask("POST", "/api/jobs", order).json()["id"]
    events = server.ask("GET", f"/api/jobs/{job}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in events.body.decode().splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]" and json.loads(lines[-2])["job"]["state"] in ENDED
    told = server.ask("GET", f"/api/jobs/{job}").json()
    assert (told["state"], told["message"]) == ("failed", f"{CANARY}.csv: contains no rows")


def test_forty_clients_at_once_each_get_their_own_text(server: Served) -> None:
    prompts = [f"{word} {number}" for number in range(10) for word in ("the cat", "a", "hello there", "wo")]
    alone = {prompt: server.text(prompt, 12) for prompt in prompts[:8]}
    with ThreadPoolExecutor(len(prompts)) as pool:
        found = dict(zip(prompts, pool.map(lambda prompt: server.text(prompt, 12), prompts), strict=True))
    assert found | alone == found


def test_requests_leave_no_handle_open_and_no_process(server: Served) -> None:
    def some() -> int:
        for _ in range(20):
            server.text("the", 3)
            server.ask("GET", "/nosuch")
            server.model("language_model", "generate", prompt="a", max_new=3)
            refused(server.model("question_answering", "predict", texts=["a"]))
        return int(settled(server.handles))

    before, children = some(), len(server.children)
    assert abs(some() - before) <= 5 and len(server.children) == children


def test_a_second_server_of_the_folder_serves_without_jobs_and_says_so(server: Served) -> None:
    second = Served.__new__(Served)
    second.folder, second.log = server.folder, server.folder / "second.txt"
    second.words = [word for word in server.words if not word.startswith(("runs/", "--index"))]
    second.start()
    try:
        assert second.ask("GET", "/api/server").json()["jobs"] is False
        assert "trains nothing" in refused(second.ask("GET", "/api/jobs"), 503)
        assert second.ask("GET", "/api/runs").json() == server.ask("GET", "/api/runs").json()
    finally:
        assert second.stop() == 0
    assert "no jobs are taken on" in second.said() and server.ask("GET", "/api/jobs").status == 200


def test_while_the_disk_is_full_models_answer_and_writing_is_refused(server: Served) -> None:
    """No process may write to a file, not even to the log; afterwards everything is as before."""
    name = ODD.replace("%", "_")
    family = [server.process.pid, *server.children]
    before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    series = [{"date": f"2026-01-{n:02}", "sold": n % 5, "price": 2.5} for n in range(1, 29)]
    order = {"kind": "compare", "data": "sample:sine", "models": ["gru"], "seeds": 1}
    for pid in family:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        os.kill(server.process.pid, signal.SIGHUP)  # which is no reason to write
        assert server.text("the", 3)
        assert server.model(name, "predict", texts=["a"]).status == 200
        refused(server.model("forecasting", "predict", rows=series), 507)  # in memory, where files are not limited
        refused(server.upload("rows.csv", b"text\na\n"), 507)
        refused(server.ask("POST", "/api/jobs", order), 507)
        assert server.ask("GET", "/health").status == 200
    finally:
        for pid in family:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    assert server.upload("rows.csv", b"text\na\n").status == 201
    assert server.model("forecasting", "predict", rows=series).status == 200
    job = server.ask("POST", "/api/jobs", order)
    assert job.status == 202 and server.ask("POST", f"/api/jobs/{job.json()['id']}/cancel").status == 200
    assert until(lambda: server.ask("GET", f"/api/jobs/{job.json()['id']}").json()["state"] in ENDED, 60)


def test_a_run_that_was_replaced_is_loaded_at_a_signal_and_one_that_is_gone_stays(server: Served) -> None:
    place, was = server.folder / "runs" / "language_model", server.ask("GET", "/api/server").json()["models"][0]
    upload = server.upload("rows.csv", b"text\na\n").json()["id"]
    shutil.rmtree(place)
    assert server.text("the", 3) and refused(server.model("language_model", "predict", upload=upload))
    os.kill(server.process.pid, signal.SIGHUP)
    assert until(lambda: "not loaded anew, the old one stays" in server.said(), 60)
    assert server.text("the", 3)
    shutil.copytree(GOLDEN / "counting", place)
    os.kill(server.process.pid, signal.SIGHUP)
    assert until(lambda: "loaded anew, version" in server.said(), 60)
    found = server.ask("GET", "/api/server").json()["models"][0]
    assert found["name"] == was["name"] and found["version"] != was["version"]
    answer = server.post("/v1/completions", model="language_model", prompt="", max_tokens=3)
    assert answer.headers["x-seqloom-version"] == found["version"] == answer.json()["system_fingerprint"]


def test_a_model_process_that_is_killed_is_told_and_comes_back(server: Served) -> None:
    rows = server.upload("rows.csv", b"text\n" + b"good morning to you all\n" * 30_000).json()["id"]
    before = {pid: used(pid) for pid in server.children}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.model, ODD.replace("%", "_"), "predict", upload=rows)
        assert until(lambda: max(used(pid) - before[pid] for pid in before) > 10)
        worker = max(before, key=lambda pid: used(pid) - before[pid])
        os.kill(worker, signal.SIGKILL)
        assert asked.result().status == 503
    assert until(lambda: server.ask("GET", "/health").status == 200, 60)
    assert server.model(ODD.replace("%", "_"), "predict", texts=["a"]).status == 200
    assert worker not in server.children and "its process has ended; starting it again" in server.said()


def used(pid: int) -> int:
    """Ticks of processor time."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def test_no_secret_and_nothing_that_was_sent_is_in_a_log_or_a_file(server: Served) -> None:
    """The last test of the module: everything before has happened."""
    for headers in ({"Authorization": f"Bearer {CANARY}"}, {"Cookie": f"seqloom_session={CANARY}"}, {"X-A": CANARY}):
        server.ask("GET", f"/v1/models?{CANARY}", **headers)
    server.model("language_model", "generate", prompt=f"{CANARY}\x1b[2J\r\nforged: line", max_new=3)
    said = server.said().replace(server.line, "")
    assert server.token not in said and CANARY not in said and "\x1b" not in said and "forged" not in said
    own = server.folder / "cache" / "serve-token"
    for path in server.folder.rglob("*"):
        if path.is_file() and path != own:
            assert server.token.encode() not in path.read_bytes(), path
    assert own.stat().st_mode & 0o077 == 0


def test_what_cannot_be_read_is_said_before_anything_listens(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "tagging", tmp_path / "run")
    (tmp_path / "run" / "model" / "model.safetensors").write_bytes(b"\x80\x04pickle")
    words = [sys.executable, "-m", "seqloom", "serve", "run", "--port=0"]
    own = {"PYTHONPATH": str(ROOT), "SEQLOOM_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1 and "run" in done.stderr
