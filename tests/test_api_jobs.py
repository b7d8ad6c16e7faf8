"""/api/jobs over HTTP: orders, their progress as events, what is offered, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from api_desk import Desk, client, opened
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from starlette.testclient import TestClient

from seqloom.serve.api import following
from seqloom.serve.jobs import looking
from seqloom.serve.jobs.choosing import Choices
from seqloom.serve.jobs.store import ENDED

COMPARE = {"kind": "compare", "data": "sample:sine", "models": ["gru", "lstm"]}
OFFER = {"tasks": [], "models": [], "samples": [], "budgets": {}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with opened(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture(scope="module")
def api(desk: Desk) -> TestClient:
    return client(desk)


def submitted(api: TestClient, **changes: Any) -> dict[str, Any]:
    sent = api.post("/api/jobs", json=COMPARE | changes)
    assert sent.status_code == 202, sent.text
    found: dict[str, Any] = sent.json()
    return found


def ended(api: TestClient, id: str) -> dict[str, Any]:
    until = time.monotonic() + 30
    while (found := api.get(f"/api/jobs/{id}").json())["state"] not in ENDED:
        assert time.monotonic() < until
        time.sleep(0.02)
    return dict(found)


def events(api: TestClient, id: str, after: int = 0) -> list[Any]:
    sent = api.get(f"/api/jobs/{id}/events", params={"after": after})
    assert sent.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in sent.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_job_is_taken_on_done_and_listed(api: TestClient) -> None:
    job = submitted(api, key="mine")
    assert job["state"] in ("queued", "running", "done") and job["asked"] == COMPARE
    assert submitted(api, key="mine")["id"] == job["id"]
    assert api.post("/api/jobs", json=COMPARE | {"key": "mine", "seeds": 2}).status_code == 409
    done = ended(api, job["id"])
    assert (done["state"], done["code"], done["progress"]) == ("done", 0, 1.0)
    assert done["lines"] == [" 50%  step 1  loss 2.0"] and done["created"] <= done["started"] <= done["ended"]
    assert job["id"] in [row["id"] for row in api.get("/api/jobs").json()["jobs"]]


def test_events_tell_every_line_and_the_end(api: TestClient) -> None:
    job = submitted(api, seeds=13)
    found = events(api, job["id"])
    lines = [event for event in found if "line" in event]
    assert [event["number"] for event in lines] == [1, 2] and lines[0]["progress"] == 0.5
    assert found[-1]["job"]["state"] == "failed" and "nothing can be learned" in found[-1]["job"]["message"]
    assert [event for event in events(api, job["id"], after=1) if "line" in event] == lines[1:]


def test_a_running_job_is_cancelled(api: TestClient) -> None:
    job = submitted(api, seeds=15)
    assert api.post(f"/api/jobs/{job['id']}/cancel").status_code == 200
    assert ended(api, job["id"])["state"] == "cancelled"


@pytest.mark.parametrize("path", ["nothing", "..%2f..", "%00", "0" * 16, "choices%20"])
def test_a_job_that_is_not_there_is_404(api: TestClient, path: str) -> None:
    for method, tail in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
        assert api.request(method, f"/api/jobs/{path}{tail}").status_code == 404


def test_an_order_of_an_upload_that_is_not_there_is_refused(api: TestClient, desk: Desk) -> None:
    before = len(list((desk.past.root / "jobs").iterdir()))
    sent = api.post("/api/jobs", json=COMPARE | {"data": "upload:" + "0" * 32})
    assert sent.status_code == 400 and "send the file first" in sent.text
    assert len(list((desk.past.root / "jobs").iterdir())) == before


def test_a_full_disk_is_said_and_over_when_there_is_room(api: TestClient, desk: Desk) -> None:
    assert desk.jobs
    base = desk.jobs.store._base
    base.execute(f"PRAGMA max_page_count = {base.execute('PRAGMA page_count').fetchone()[0]}")
    long = COMPARE | {"columns": dict.fromkeys("abcdefghijklmnopqrst", "x" * 200)}
    codes = [api.post("/api/jobs", json=long).status_code for _ in range(30)]
    assert set(codes) <= {202, 507} and codes[-1] == 507
    assert api.get("/api/jobs").status_code == 200
    base.execute("PRAGMA max_page_count = 1000000")
    assert ended(api, submitted(api)["id"])["state"] == "done"


def test_without_jobs_the_routes_say_so(desk: Desk) -> None:
    api = client(Desk(desk.past, desk.uploads, None))
    assert api.get("/api/jobs").status_code == api.post("/api/jobs", json=COMPARE).status_code == 503


def test_an_upload_is_looked_at_in_a_process_of_its_own(api: TestClient, desk: Desk, own_cache: None) -> None:
    rows = "".join(f"{word} film {n},{n % 2}\n" for n, word in enumerate(["good", "bad"] * 40))
    sent = api.post("/api/uploads", params={"name": "reviews.csv"}, content=f"review,stars\n{rows}".encode())
    found = api.post("/api/jobs/look", json={"data": f"upload:{sent.json()['id']}"}).json()
    assert found["task"] == "classification" and found["columns"] == ["review", "stars"]
    assert found["roles"] == {"text": "review", "label": "stars"} and found["findings"]
    assert str(desk.uploads.folder) not in json.dumps(found)


def test_a_look_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match="takes more than 0 s"):
        looking.look("sample:sine", None, seconds=0.05)


@pytest.mark.parametrize("body", [{}, {"data": "x"}, {"data": "sample:none"}, {"data": "sample:sine", "task": "x"}, []])
def test_a_look_at_nonsense_is_refused(api: TestClient, body: Any) -> None:
    assert api.post("/api/jobs/look", json=body).status_code in (400, 422)


def test_what_is_offered_is_found_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(Choices, "_asked", lambda self: asked.append(1) or OFFER)
    choices = Choices(tmp_path)
    assert choices.all() == choices.all() == OFFER and len(asked) == 1


@pytest.mark.parametrize(
    ("line", "share"),
    [
        (" 40%  step 1,200  loss 1.71", 0.4), ("100%  step 3", 1.0), ("lstm  seed 1: 2 s; 2 of 10 done, about", 0.2),
        ("10 of 10 done", 1.0), ("task: forecasting", None), ("50 % of it", None), ("0 of 0 done", None), ("", None),
    ],
)  # fmt: skip
def test_how_far_a_line_says_it_is(line: str, share: float | None) -> None:
    assert following.share(line) == share


@pytest.mark.long
def test_no_request_makes_it_fail(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from the description of the routes, valid or not, is never an answer of 500."""
    monkeypatch.setattr(Choices, "_asked", lambda self: OFFER)
    monkeypatch.setattr(
        looking, "_asked", lambda *_: {"tasks": [], "task": None, "columns": [], "roles": {}, "findings": []}
    )
    app: Any = client(desk).app
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    failed: list[str] = []

    def tried(case: Any) -> None:
        answer = case.call()
        failed.extend([f"{case.as_curl_command()}: {answer.status_code}"] if answer.status_code == 500 else [])

    brief = settings(
        max_examples=8, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    for found in schema.get_all_operations():
        operation = found.ok()
        if not operation.path.endswith("/events"):  # of a job that runs they do not end
            for mode in GenerationMode:
                with suppress(Unsatisfiable):  # a route without fields has nothing that could be wrong
                    brief(given(case=operation.as_strategy(generation_mode=mode))(tried))()
    assert not failed


@pytest.mark.parametrize("text", ["\ud800", "a\ud800"])
def test_half_characters_are_refused(api: TestClient, text: str) -> None:
    body = json.dumps(COMPARE | {"columns": {"text": text}}).encode()
    assert api.post("/api/jobs", content=body, headers={"content-type": "application/json"}).status_code == 422
    for name in ("key", "task", "data", "budget"):
        body = json.dumps(COMPARE | {name: text}).encode()
        assert api.post("/api/jobs", content=body, headers={"content-type": "application/json"}).status_code == 422


def test_events_end_when_the_server_does(tmp_path: Path) -> None:
    with opened(tmp_path, start=False) as desk:
        assert desk.jobs
        api = client(desk)
        job = submitted(api)
        desk.jobs.closing = True
        assert events(api, job["id"]) == []
