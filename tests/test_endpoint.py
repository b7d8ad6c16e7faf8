"""openai:URL as a model: what is sent, what is understood, and that the key stays secret; the server is in here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from seqloom.adapt.labels import match_label
from seqloom.adapt.prompting import prompt
from seqloom.core.errors import RunError, UserError
from seqloom.decode import endpoint
from seqloom.decode.endpoint import Endpoint

pytestmark = pytest.mark.usefixtures("own_cache")

SECRET = "sk-never-show-this"
Reply = Callable[[dict[str, Any]], tuple[int, Any]]


class Server:
    """Answers by `reply`, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Reply = lambda body: (200, said("bad"))
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append({"path": self.path, **body})
                server.headers.append(dict(self.headers))
                code, answer = server.reply(body)
                self.send_response(code)
                if 300 <= code < 400:
                    self.send_header("Location", answer)
                    answer = ""
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, *_: Any) -> None: ...

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.source = f"openai:http://127.0.0.1:{self.http.server_port}/v1#tiny"


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(endpoint, "_PAUSE", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.http.shutdown()
    thread.join()
    found.http.server_close()


def rows_file(path: Path, count: int = 20) -> Path:
    lines = [f"row {n} is {'poor' if n % 2 else 'fine'},{'bad' if n % 2 else 'good'}" for n in range(count)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


def test_a_curve_of_an_endpoint(server: Server, tmp_path: Path) -> None:
    answers = {"fine": "Good.", "poor": "who knows"}
    server.reply = lambda body: (200, said(answers[body["messages"][-1]["content"].split()[4]]))
    data = rows_file(tmp_path / "rows.csv")
    curve = prompt(server.source, data, test=data, shots=[0, 2], draws=2, out=tmp_path / "out", quiet=True)
    assert [point["accuracy"] for point in curve.points] == [0.5, 0.5]
    assert [point["no_label"] for point in curve.points] == [0.5, 0.5]
    assert len(server.asked) == 20 * (1 + 2)
    first, last = server.asked[0], server.asked[-1]
    assert (first["path"], first["model"], first["temperature"]) == ("/v1/chat/completions", "tiny", 0)
    assert first["stop"] == ["\n"] and first["max_tokens"] == 16
    assert [m["role"] for m in last["messages"]] == ["system", *["user", "assistant"] * 4, "user"]
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in (tmp_path / "out" / "curve.json").read_text()


def test_busy_servers_are_asked_again(server: Server) -> None:
    codes = iter([429, 503])
    server.reply = lambda body: (code, {}) if (code := next(codes, 200)) != 200 else (200, said("good"))
    assert Endpoint.parse(server.source).ask([{"role": "user", "content": "?"}]) == "good"
    assert len(server.asked) == 3


FAILING: dict[str, tuple[Reply, str]] = {
    "always busy": (lambda body: (500, {}), "no answer after 5 requests"),
    "wrong key": (lambda body: (401, {}), "refused the request .401 .* is OPENAI_API_KEY set"),
    "no such model": (lambda body: (404, {}), "refused the request .404"),
    "another host": (lambda body: (307, "http://example.invalid/v1"), "redirects to another address"),
    "no JSON": (lambda body: (200, b"<html>"), "not that of an OpenAI-compatible"),
    "other JSON": (lambda body: (200, {"choices": []}), "not that of an OpenAI-compatible"),
    "no text": (lambda body: (200, {"choices": [{"message": {"content": None}}]}), "not that of an OpenAI-compatible"),
    "endless": (lambda body: (200, b"x" * 2_000_000), "not that of an OpenAI-compatible"),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_are_one_line_without_the_key(server: Server, name: str) -> None:
    server.reply, message = FAILING[name]
    with pytest.raises(UserError, match=message) as error:
        Endpoint.parse(server.source).ask([{"role": "user", "content": "?"}])
    assert SECRET not in str(error.value) and "\n" not in str(error.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_PAUSE", 0.001)
    with pytest.raises(RunError, match=r"no answer after 5 requests \(Connection refused\)"):
        Endpoint.parse("openai:http://127.0.0.1:9/v1#m").ask([])


@pytest.mark.parametrize("source", [
    "openai:", "openai:http://127.0.0.1/v1", "openai:file:///etc/passwd#m", "openai:ftp://a/v1#m", "openai:http://#m",
    "openai:http://key@host/v1#m", "openai:http://host/v1?key=1#m", "openai:http://host:99999/v1#m",
    "openai:http://a b#m", "openai:http://:hidden@h/v1#m", "openai:http://me:hidden@h/v1#m", "openai:http://@h/v1#m",
    "openai:http://h/v\u00e9#m",
])  # fmt: skip
def test_addresses_that_are_refused(source: str) -> None:
    with pytest.raises(UserError, match="give an http or https address") as error:
        Endpoint.parse(source)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("key", [f"{SECRET}\nX-Other: 1", f"{SECRET} {SECRET}", f"{SECRET}\u20ac", f"{SECRET}\x7f"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(
    server: Server, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UserError, match="OPENAI_API_KEY: a key is one line of ASCII") as error:
        Endpoint.parse(server.source).ask([])
    assert SECRET not in str(error.value) and "\n" not in str(error.value) and server.asked == []


def test_the_key_goes_past_proxies(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert Endpoint.parse(server.source).ask([]) == "bad"


def test_rows_with_several_labels_are_refused(server: Server, tmp_path: Path) -> None:
    lines = [f"row {n},{'a;b' if n % 3 else 'a'}" for n in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    how: dict[str, Any] = {"options": {"data.separator": ";"}, "out": tmp_path / "out", "quiet": True}
    with pytest.raises(UserError, match=r"one label per row, but these rows may have several; leave data.separator"):
        prompt(server.source, tmp_path / "rows.csv", test=tmp_path / "rows.csv", **how)
    assert server.asked == []


def test_answers_are_matched_to_labels() -> None:
    words = ["positive", "negative", "very positive"]
    found = [
        "Positive",
        " negative.",
        '"Very positive" I think',
        "**negative**",
        "positively",
        "the answer is negative",
        "",
    ]
    assert [match_label(answer, words) for answer in found] == [0, 1, 2, 1, None, None, None]


def test_an_answer_that_comes_byte_by_byte_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_TIMEOUT", 5.0)
    monkeypatch.setattr(endpoint, "_PIECE", 1)
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr("seqloom.decode.endpoint.time.monotonic", lambda: float(next(clock)))
    with pytest.raises(RunError, match=r"no answer after 2 requests \(not finished after 5 seconds\)"):
        Endpoint.parse(server.source).ask([{"role": "user", "content": "?"}])
