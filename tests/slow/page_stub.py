"""A small server with made-up answers, for trying the page without models: `python tests/slow/page_stub.py [PORT]`."""

from __future__ import annotations

import json
import mimetypes
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

import page_data as data

PAGE = Path(__file__).parent.parent.parent / "seqloom" / "serve" / "page"
TOKEN = "t0ken"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; frame-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
FRAMED = "sandbox allow-scripts; frame-ancestors 'self'"


class Stub(ThreadingHTTPServer):
    """`text` changes every text of a user or a model; `empty`: nothing is served and nothing was trained."""

    daemon_threads = True

    def __init__(
        self, port: int = 0, *, number: int = 24, text: data.Text = data.same, empty: bool = False, pause: float = 0
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.text, self.empty, self.pause = text, empty, pause
        self.server_facts = data.server(text)
        self.runs = data.runs(number, text)
        self.asked: list[tuple[str, Any]] = []
        self.uploads: dict[str, str] = {}
        self.finished = False  # the job
        if empty:
            self.runs, self.server_facts = [], {**self.server_facts, "models": [], "indexes": []}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def started(self) -> Stub:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/":
            self._file("index.html")
        elif path == "/health":
            self._json({"ok": True})
        elif path.startswith("/static/"):
            self._file(path.removeprefix("/static/"))
        elif "session=" not in self.headers.get("Cookie", ""):
            self._refuse(401, "no session")
        else:
            self._read([unquote(part) for part in path.split("/")[2:]])

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        if parts == ["session"]:
            self._session(json.loads(body)["token"])
        elif self.headers.get("X-CSRF-Token") != "c5rf":
            self._refuse(403, "no CSRF token")
        elif parts[1:] == ["uploads"]:
            name = parse_qs(urlsplit(self.path).query)["name"][0]
            self.server.uploads[name] = body.decode()
            self._json({"id": "0" * 32, "name": name, "bytes": len(body)})
        else:
            asked = json.loads(body or b"{}")
            self.server.asked.append((self.path, asked))
            self._write(parts[1:], asked)

    def _session(self, token: str) -> None:
        if token != TOKEN:
            self._refuse(401, "wrong token")
            return
        cookies = ["session=s; HttpOnly; SameSite=Strict; Path=/", "seqloom_csrf=c5rf; SameSite=Strict; Path=/"]
        self._json({"csrf": "c5rf"}, [("Set-Cookie", cookie) for cookie in cookies])

    def _read(self, parts: list[str]) -> None:
        text, empty = self.server.text, self.server.empty
        match parts:
            case ["server"]:
                self._json(self.server.server_facts)
            case ["runs"]:
                self._json({"runs": self.server.runs})
            case ["runs", run, "curve"]:
                self._json(data.curve([one["id"] for one in self.server.runs].index(run) % 7))
            case ["comparisons"]:
                self._json({"comparisons": [] if empty else data.comparisons(text)})
            case ["comparisons", _]:
                self._json({"comparison": data.comparisons(text)[0], "plan": None, "result": None, "message": None})
            case ["comparisons", _, "report"] | ["pages", _]:
                self._send(
                    data.made_page("Report").encode(), "text/html; charset=utf-8", [("Content-Security-Policy", FRAMED)]
                )
            case ["studies"]:
                self._json({"studies": data.studies(text)[-1:] if empty else data.studies(text)})
            case ["jobs"]:
                self._json({"jobs": []})
            case ["jobs", "choices"]:
                self._json(data.choices(text))
            case ["jobs", _]:
                self._json(data.job("done" if self.server.finished else "running", text))
            case ["jobs", _, "events"]:
                self.server.finished = True
                lines = [{"line": text(f"lstm seed {n}: step {100 * n}"), "progress": n / 20} for n in range(20)]
                self._events([{"job": data.job("running", text)}, *lines, {"job": data.job("done", text)}])
            case _:
                self._refuse(404, "not found")

    def _write(self, parts: list[str], asked: Any) -> None:
        text = self.server.text
        match parts:
            case ["models", _, "generate"]:
                self._events(data.tokens(asked, text))
            case ["models", name, "predict"]:
                task = next(one["task"] for one in self.server.server_facts["models"] if one["name"] == name)
                rows = asked.get("rows") or [
                    {"text": line} for file in self.server.uploads.values() for line in file.splitlines()
                ]
                self._json({"rows": data.predictions(task, rows, text), "columns": []})
            case ["models", _, "explain"]:
                self._json({"explanation": {}, "page": "/api/pages/1"})
            case ["indexes", _, "ask"]:
                self._json({"reply": {}, "page": "/api/pages/2"})
            case ["jobs", "look"]:
                self._json(data.looked(text))
            case ["jobs"]:
                self._json({"id": "j1"})
            case _:
                self._refuse(404, "not found")

    def _events(self, events: Iterable[Any]) -> None:
        self.send_response(200)
        for name, value in [
            ("Content-Type", "text/event-stream"),
            ("Connection", "close"),
            ("Content-Security-Policy", POLICY),
        ]:
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        for event in [*(json.dumps(event) for event in events), "[DONE]"]:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()
            time.sleep(self.server.pause)

    def _file(self, name: str) -> None:
        path = PAGE / name
        if path.parent != PAGE or not path.is_file():
            self._refuse(404, "not found")
            return
        self._send(path.read_bytes(), f"{mimetypes.guess_type(name)[0]}; charset=utf-8")

    def _json(self, found: Any, headers: list[tuple[str, str]] | None = None, status: int = 200) -> None:
        self._send(json.dumps(found).encode(), "application/json", headers or [], status)

    def _refuse(self, status: int, message: str) -> None:
        self._json(
            {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status=status
        )

    def _send(self, body: bytes, kind: str, headers: list[tuple[str, str]] | None = None, status: int = 200) -> None:
        self.send_response(status)
        every = {"Content-Security-Policy": POLICY, **dict(headers or [])}
        cookies = [pair for pair in headers or [] if pair[0] == "Set-Cookie"]
        for name, value in [*((k, v) for k, v in every.items() if k != "Set-Cookie"), *cookies]:
            self.send_header(name, value)
        for name, value in [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
        ]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    stub = Stub(int(sys.argv[1]) if sys.argv[1:] else 8765, pause=0.03)
    print(f"{stub.address}/#token={TOKEN}")
    stub.serve_forever()
