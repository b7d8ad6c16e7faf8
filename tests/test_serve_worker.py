"""The process that holds a model, driven over its socket as the server drives it."""

from __future__ import annotations

import csv
import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import small_fit, text

from seqloom.retrieve.index import index
from seqloom.runs.fit import fit
from seqloom.runs.run import Run
from seqloom.serve.children import frames
from seqloom.serve.worker.opening import open_served

PACKAGE = Path(__file__).parent.parent
Events = list[dict[str, Any]]


class Process:
    """A worker, and the events that it sent, by request."""

    def __init__(self, folder: Path, **opening: Any) -> None:
        self.wire, theirs = socket.socketpair()
        command = [sys.executable, "-m", "seqloom.serve.worker", str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=PACKAGE)
        theirs.close()
        self.wire.settimeout(120)
        self.number, self.events = 0, dict[int, Events]()
        usual = {"open": str(folder), "kind": "run", "int8": False, "rows": 8, "threads": 1, "memory": None}
        frames.send(self.wire, usual | opening)
        first = frames.receive(self.wire)
        assert first is not None
        self.facts, self.failed = first.get("ready"), first.get("failed")

    def send(self, op: str, **what: Any) -> int:
        self.number += 1
        self.events[self.number] = []
        frames.send(self.wire, {"id": self.number, "op": op, **what})
        return self.number

    def receive(self) -> None:
        frame = frames.receive(self.wire)
        assert frame is not None, "the process has ended"
        for event in frame["events"]:
            self.events[event["id"]].append(event)

    def wait(self, *numbers: int) -> list[Events]:
        for number in numbers:
            while not any("done" in event or "error" in event for event in self.events[number]):
                self.receive()
        return [self.events[number] for number in numbers]

    def ask(self, op: str, **what: Any) -> Events:
        return self.wait(self.send(op, **what))[0]

    def stats(self) -> dict[str, Any]:
        return self.ask("stats")[0]["stats"]

    def close(self) -> None:
        self.wire.close()
        assert self.process.wait(10) == 0


def said(events: Events, index: int = 0) -> str:
    return "".join(event.get("text", "") for event in events if event.get("index") == index)


def ends(events: Events) -> dict[int, str]:
    return {event["index"]: event["end"] for event in events if "end" in event}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, own_cache: None) -> Path:
    return tmp_path_factory.mktemp("worker")


@pytest.fixture(scope="module")
def book(folder: Path) -> Path:
    path = folder / "book.txt"
    path.write_text(text(4000))
    return path


@pytest.fixture(scope="module")
def runs(folder: Path, book: Path) -> dict[str, Run]:
    return {name: small_fit(book, folder / name, name, ["train.steps=12"]) for name in ("gpt", "gru")}


@pytest.fixture(scope="module", params=["gpt", "gru"])
def run(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    return runs[request.param]


@pytest.fixture(scope="module")
def worker(run: Run) -> Iterator[Process]:
    process = Process(run.folder.path)
    yield process
    process.close()


def greedy(run: Run, prompt: str, max_new: int, **how: Any) -> str:
    return run.generate(prompt, max_new=max_new, temperature=0, **how)


def test_it_says_what_it_serves(run: Run, worker: Process) -> None:
    facts = worker.facts
    assert facts is not None
    assert facts["task"] == "language_model" and facts["verb"] == "generate" and facts["embeds"] and not facts["chat"]
    assert facts["architecture"] == run.config.model["name"] and facts["limit"] == run.model.limit
    assert facts["parameters"] == sum(p.numel() for p in run.model.parameters()) and len(facts["version"]) == 16
    assert facts["state_bytes"] > 0 and facts["score"]["name"] == run.task.metric


def test_int8_changes_no_number_of_parameters(run: Run) -> None:
    facts = open_served({"open": str(run.folder.path), "int8": True}).facts
    assert facts["parameters"] == sum(p.numel() for p in run.model.parameters())


def test_a_text_comes_token_by_token_and_equals_that_of_the_run(run: Run, worker: Process) -> None:
    events = worker.ask("generate", prompt="the cat", max_new=30, temperature=0)
    assert said(events) == greedy(run, "the cat", 30)
    assert events[0]["started"] == {"prompt_tokens": 7} and ends(events) == {0: "length"}
    done = events[-1]["done"]
    assert done["completion_tokens"] == 30 and done["prompt_tokens"] == 7 and done["state_bytes"] > 0
    assert sum("text" in event for event in events) == 30


def test_samples_with_a_seed_are_those_of_the_run(run: Run, worker: Process) -> None:
    how: dict[str, Any] = {"max_new": 20, "temperature": 0.9, "top_k": 5, "seed": 4}
    events = worker.ask("generate", prompt="the ", n=3, **how)
    assert [said(events, n) for n in range(3)] == run.generate("the ", count=3, **how)


def test_a_text_ends_before_a_stop_string_which_is_never_shown(run: Run, worker: Process) -> None:
    whole = greedy(run, "the cat sat", 40)
    stop = whole[10:13]
    events = worker.ask("generate", prompt="the cat sat", max_new=40, temperature=0, stop=[stop, "never"])
    assert said(events) == whole[: whole.find(stop)] and ends(events) == {0: "stop"}
    assert events[-1]["done"]["completion_tokens"] < 40
    assert worker.stats()["active"] == 0


def test_log_probabilities_of_prompt_and_answer(run: Run, worker: Process) -> None:
    how = {"max_new": 3, "temperature": 0, "logprobs": 2, "echo": True}
    events = worker.ask("generate", prompt="the cat", **how)
    tokens = [event["token"] for event in events if "token" in event]
    assert said(events) == "the cat" + greedy(run, "the cat", 3) and len(tokens) == 10
    assert tokens[0]["logprob"] is None and all(token["logprob"] <= 0 for token in tokens[1:])
    for token in tokens[7:]:
        assert token["top"][0] == [token["text"], pytest.approx(token["logprob"])] and len(token["top"]) == 2
    only = worker.ask("generate", prompt="the cat", **how | {"max_new": 0, "logprobs": None})
    assert said(only) == "the cat" and ends(only) == {0: "length"} and only[-1]["done"]["completion_tokens"] == 0


def test_two_hundred_requests_at_once_get_what_each_gets_alone(run: Run, worker: Process) -> None:
    prompts = [f"the {'cat ' * (n % 5)}{n}" for n in range(200)]
    numbers = [worker.send("generate", prompt=prompt, max_new=8, seed=n) for n, prompt in enumerate(prompts)]
    for n, (prompt, events) in enumerate(zip(prompts, worker.wait(*numbers), strict=True)):
        assert said(events) == run.generate(prompt, max_new=8, seed=n), n
    assert worker.stats() | {"active": 0, "queued": 0, "rows": 0} == worker.stats()


def test_a_cancelled_request_stops_working_at_once(worker: Process) -> None:
    number = worker.send("generate", prompt="the", max_new=1_000_000, temperature=0)
    while not any("text" in event for event in worker.events[number]):
        worker.receive()
    worker.send("cancel", id=0)  # of a request that is not there
    frames.send(worker.wire, {"op": "cancel", "id": number})
    (events,) = worker.wait(number)
    assert ends(events) == {0: "abort"} and events[-1]["done"]["completion_tokens"] >= 1
    before = worker.stats()
    assert (before["active"], before["rows"]) == (0, 0) and before["steps"] == worker.stats()["steps"]


@pytest.mark.parametrize(
    ("what", "said_of_it"),
    [
        ({"ids": []}, "ids: give at least one token"),
        ({"ids": [10**6]}, "ids: give at least one token"),
        ({"prompt": "a", "max_new": -1}, "max_new: must be"),
        ({"prompt": "a", "n": 9}, "n: must be"),
        ({"prompt": "a", "temperature": -1}, "temperature=-1"),
        ({"prompt": "a", "seed": -1}, "seed=-1"),
        ({"messages": [{"role": "user", "content": "a"}]}, "no chat template"),
        ({"prompt": "\ud800"}, "surrogate"),
    ],
)
def test_a_request_that_cannot_be_worked_on_is_told_why(worker: Process, what: Any, said_of_it: str) -> None:
    other = worker.send("generate", prompt="the", max_new=20, temperature=0)
    (event,) = worker.ask("generate", **what)
    assert event["error"]["kind"] == "user" and said_of_it in event["error"]["message"]
    assert ends(worker.wait(other)[0]) == {0: "length"}


def test_what_makes_no_sense_ends_alone(worker: Process) -> None:
    other = worker.send("generate", prompt="the", max_new=20, temperature=0)
    for what in ({"op": "dance"}, {"op": "predict", "rows": [{"text": "a"}]}, {"op": "explain", "input": 3}):
        (event,) = worker.ask(**what)
        assert set(event["error"]) == {"kind", "message"} and "\n" not in event["error"]["message"]
    (event,) = worker.ask("generate", prompt="a", temperature="hot")
    assert event["error"] == {"kind": "failed", "message": "the model could not work on this request (TypeError)"}
    assert ends(worker.wait(other)[0]) == {0: "length"}


def test_an_empty_prompt_is_that_of_the_run(run: Run, worker: Process) -> None:
    assert said(worker.ask("generate", prompt="", max_new=5, temperature=0)) == greedy(run, "", 5)


def test_texts_become_unit_vectors(worker: Process) -> None:
    (event, done) = worker.ask("embed", texts=["the cat", "", "the cat", "a mat " * 50])
    assert done["done"] == {} and event["tokens"] >= 15
    assert all(math.isclose(sum(x * x for x in vector), 1, rel_tol=1e-4) for vector in event["vectors"])
    assert event["vectors"][0] == pytest.approx(event["vectors"][2], abs=1e-5)


def test_a_text_is_explained_while_another_is_written(run: Run, worker: Process) -> None:
    other = worker.send("generate", prompt="the", max_new=300, temperature=0)
    events = worker.ask("explain", input={"text": "the cat"}, views=["predictions"], page=True)
    assert events[0]["explanation"]["views"]["predictions"] and events[0]["html"].startswith("<!doctype html>")
    assert said(worker.wait(other)[0]) == greedy(run, "the", 300)


def test_memory_is_limited_and_the_end_of_the_socket_ends_the_process(runs: dict[str, Run]) -> None:
    process = Process(runs["gpt"].folder.path, memory=3 << 30, int8=True)
    limits = Path(f"/proc/{process.process.pid}/limits")
    if limits.exists():
        assert str(3 << 30) in next(line for line in limits.read_text().splitlines() if "data size" in line)
    assert ends(process.ask("generate", prompt="the", max_new=5, temperature=0)) == {0: "length"}
    process.send("generate", prompt="the", max_new=1_000_000, temperature=0)
    process.receive()
    process.close()


def test_a_folder_that_is_no_run_fails_with_one_line(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.facts is None and process.failed is not None and "\n" not in process.failed["message"]
    assert process.process.wait(10) == 0


def test_labels_and_forecasts_are_predicted(folder: Path) -> None:
    data = folder / "labels.csv"
    rows = [(f"{word} word {n}", label) for n in range(20) for word, label in (("good", "yes"), ("bad", "no"))]
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    quick = ["train.steps=4", "train.threads=1", "model.width=8"]
    how: dict[str, Any] = {"task": "classification", "data": str(data), "model": "gru", "quiet": True}
    made = fit(None, out=folder / "labels", overrides=quick, **how)
    process = Process(folder / "labels")
    assert process.facts is not None and process.facts["columns"] == ["text"] and process.facts["verb"] == "predict"
    events = process.ask("predict", rows=[{"text": "good one"}, {"text": "bad"}])
    wanted = list(made.predict(texts=["good one", "bad"]))
    found = [row for event in events for row in event.get("rows", [])]
    assert [row["label"] for row in found] == [row["label"] for row in wanted]
    from_file = [row for event in process.ask("predict_file", path=str(data)) for row in event.get("rows", [])]
    assert len(from_file) == 40
    (event,) = process.ask("predict_file", path=str(folder / "gone.csv"))
    assert event["error"]["kind"] == "user" and str(folder) not in event["error"]["message"]
    (event,) = process.ask("generate", prompt="the")
    assert event["error"]["kind"] == "user"
    process.close()


def test_documents_answer(folder: Path) -> None:
    documents = folder / "documents"
    documents.mkdir()
    (documents / "terms.txt").write_text("Orders are shipped within two days.\n\nThe guarantee lasts three years.\n")
    index(documents, folder / "index", encoder=None).close()
    process = Process(folder / "index", kind="index")
    event, done = process.ask("ask", question="How long does the guarantee last?", k=3)
    assert "three years" in str(event["reply"]) and event["html"].startswith("<!doctype html>") and done["done"] == {}
    (event,) = process.ask("generate", prompt="the")
    assert event["error"]["kind"] == "user"
    process.close()
    assert os.path.exists(folder / "index")
