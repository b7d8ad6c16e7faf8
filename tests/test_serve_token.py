"""The token, who may be asked from where, what a command refuses, and what is never written anywhere."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from serve_toys import TOKEN, WORKER, begin, read_reply, serving, until

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.serve import serving as verb
from seqloom.serve.limits import Limits
from seqloom.serve.token import Attempts, Sessions, kept_token

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "tests" / "golden" / "runs"


def test_a_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    token, made = kept_token(path)
    assert made and kept_token(path) == (token, False)
    assert len(token) >= 43 and path.stat().st_mode & 0o777 == 0o600
    assert kept_token(tmp_path / "other")[0] != token


@pytest.mark.parametrize("spoil", ["mode", "short", "empty", "folder", "link", "pipe", "binary"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "token"
    if spoil in ("folder", "pipe"):
        path.mkdir() if spoil == "folder" else os.mkfifo(path)
    elif spoil == "link":
        kept_token(tmp_path / "real")
        path.symlink_to(tmp_path / "real")
    else:
        path.write_bytes({"short": b"abc\n", "binary": b"\xff" * 50}.get(spoil, b""))
        path.chmod(0o600)
        if spoil == "mode":
            path.unlink()
            kept_token(path)
            path.chmod(0o644)
    with pytest.raises(UserError, match="token"):
        kept_token(path)


def test_twenty_wrong_tokens_a_minute_are_told_so_and_then_no_more(tmp_path: Path) -> None:
    now = [0.0]
    attempts = Attempts(20, lambda: now[0])
    assert [attempts.wrong("a") for _ in range(21)] == [False] * 20 + [True]
    assert not attempts.wrong("b")
    now[0] = 61
    assert not attempts.wrong("a")


def test_guessing_is_limited_and_the_right_token_still_serves() -> None:
    with serving("book") as server:
        most = server.state.limits.wrong_tokens
        guesses = ["", "x", "Bearer", "x" * 10_000, *(f"guess{number}" for number in range(200))]
        found = [server.ask("GET", "/v1/models", headers={"Authorization": f"Bearer {g}"}).status for g in guesses]
        assert found == [401] * most + [429] * (len(guesses) - most)
        assert server.ask("POST", "/session", {"token": "x"}, token=False).status == 429
        assert server.ask("GET", "/v1/models").status == 200
        found = server.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + "x" * (1 << 20)})
        assert found.status == 431


def test_tokens_are_compared_only_as_digests() -> None:
    """In one place, which gets nothing but digests; no other comparison names a token."""
    calls = []
    for path in sorted((ROOT / "seqloom" / "serve").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("compare_digest"):
                calls.append(path.name)
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
                said = ast.unparse(node)
                secret = re.search(r"token(?!s)|csrf|cookie|secret", said)
                assert not secret, f"{path}: {said}"
    assert calls == ["token.py"]


def test_sessions_end_and_are_few() -> None:
    now = [0.0]
    sessions = Sessions(Limits(sessions=2, session_seconds=10), lambda: now[0])
    first, second, third = (sessions.open()[0] for _ in range(3))
    assert sessions.find(first) is None and sessions.find(second) and sessions.find(third)
    now[0] = 11
    assert sessions.find(third) is None and sessions.find("nosuch") is None


EXPOSED = [
    ("--host 0.0.0.0", "the token would travel in the clear"),
    ("--host 0.0.0.0 --no-token", "everyone in the network could ask"),
    ("--host 0.0.0.0 --no-token --behind-proxy", "everyone in the network could ask"),
    ("--host :: --port 0", "the token would travel in the clear"),
    ("--host 192.0.2.1", "the token would travel in the clear"),
    ("--host example.org", "the token would travel in the clear"),
    ("--no-token --behind-proxy", "everyone could ask"),
    ("--cert a.pem", "--cert and --key belong together"),
    ("--key a.pem", "--cert and --key belong together"),
    ("--host 0.0.0.0 --cert a.pem --key a.pem", "--cert a.pem, --key a.pem: No such file"),
    ("--host 0.0.0.0 --cert text --key text", "not a certificate"),
    ("--host 192.0.2.1 --behind-proxy --port 0", "choose another one"),
    ("--host a..b --behind-proxy --port 0", "not an address of this machine"),
    ("--allow-host evil:80", "not a host name"),
    ("--allow-host a/b", "not a host name"),
    ("nosuch", "nosuch: not a run folder"),
    ("--index nosuch", "nosuch: not an index"),
    ("--threads 1000", "more than four for each core"),
    ("--token-file text", "text: others may read it"),
    ("--port 65536", "--port"),
    ("--rows 0", "--rows"),
    ("--memory 1", "--memory"),
    ("sampled.csv --int8 --open --runs there", "not a run folder"),
]


@pytest.mark.parametrize("words, said", EXPOSED)
def test_what_would_expose_a_server_or_cannot_be_served_is_refused(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    Path("text").write_text("no token")
    Path("text").chmod(0o644)
    monkeypatch.setattr(sys, "argv", ["seqloom", "serve", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    assert end.value.code == 2 and said in error and error.count("\n") == 1
    assert "token" not in os.listdir(tmp_path)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UserError, match="in use; choose another"):
        verb.serve(port=taken.getsockname()[1], token_file=tmp_path / "token")


PROCESS = f"""
import sys
from pathlib import Path
from seqloom.serve.children.models import Opening
from seqloom.serve.serving import serve
assert "torch" not in sys.modules
serve(sys.argv[1:], indexes=[], port=0, token_file="token", opening=Opening(worker=({WORKER!r},)),
      say=lambda line: print(line, flush=True))
assert "torch" not in sys.modules
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A server as a process of its own, over a run whose model is not loaded."""
    shutil.copytree(RUNS / "language_model", tmp_path / "lm")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    started = subprocess.Popen(
        [sys.executable, "-c", PROCESS, "lm"], cwd=tmp_path, env=environment, text=True, stdout=-1, stderr=-1,
    )  # fmt: skip
    yield started
    started.kill()
    started.communicate()


def test_a_server_ends_in_order_and_without_torch(process: subprocess.Popen, tmp_path: Path) -> None:
    line = process.stdout.readline()
    found = re.fullmatch(r"serving lm on http://127\.0\.0\.1:(\d+)/#token=(\S+) \(API: .*/v1; 256 .*\)\n", line)
    assert found and found[2] == (tmp_path / "token").read_text().strip()
    port = int(found[1])
    children = pids(process.pid)
    assert children
    asked = {"model": "lm", "prompt": "<slow:0.05>"}
    wires = [begin(port, asked | {"max_tokens": tokens}, found[2]) for tokens in (10, 1000)]
    for wire in wires:
        assert b"200 OK" in wire.recv(100)
    process.send_signal(signal.SIGTERM)
    assert until(lambda: read_reply(begin(port, {"model": "lm", "prompt": "a"}, found[2])).status == 503)
    process.send_signal(signal.SIGTERM)  # once more: what runs is aborted now
    assert process.wait(30) == 0
    first, second = map(all_of, wires)
    assert b"[DONE]" in first or b'"code": "aborted"' in first
    assert b'"code": "aborted"' in second
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    said = process.stdout.read() + process.stderr.read()
    assert found[2] not in said and "Traceback" not in said


def test_model_processes_end_with_a_server_that_is_killed(process: subprocess.Popen) -> None:
    process.stdout.readline()
    children = pids(process.pid)
    process.kill()
    assert children and until(lambda: not [pid for pid in children if running(pid)])


def pids(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in found]


def running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def all_of(wire: socket.socket) -> bytes:
    data = b""
    while part := wire.recv(1 << 16):
        data += part
    return data


def test_no_secret_and_no_control_character_reaches_a_log_or_an_answer(
    capsys: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture
) -> None:
    verb._log()
    bodies = []
    with serving("book", "label") as server:
        for path in (
            "/v1/models",
            "/nosuch\x1b",
            "/v1/models/%1b[2J",
            "/api/pages/x%0d%0aSet-Cookie:a=b",
            f"/?token={TOKEN}",
        ):
            for headers in ({}, {"X-Odd": "\x1b[31m"}, {"Cookie": f"seqloom_session={TOKEN}"}):
                found = server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + b"".join(
                    f"{name}: {value}\r\n".encode() for name, value in headers.items()
                ) + b"\r\n")  # fmt: skip
                bodies.append(found.body if found else b"")
        for prompt in ("<failed> \x1b[2J", "<crash> \r\n", "<user>\x00"):
            bodies.append(server.ask("POST", "/v1/completions", {"model": "book", "prompt": prompt}).body)
    said = capsys.readouterr()
    everything = b"".join(bodies) + (said.out + said.err).encode()
    assert TOKEN.encode() not in everything and b"\x1b" not in everything and b"Traceback" not in everything
    assert str(ROOT).encode() not in everything and b"/tests/" not in everything


def test_building_the_application_and_asking_for_help_load_no_torch() -> None:
    script = (
        "import sys\n"
        "from seqloom.serve.app import create_app\n"
        "from serve_toys import state_of\n"
        "create_app(state_of('book'))\n"
        "assert 'torch' not in sys.modules\n"
        "sys.argv = ['seqloom', 'serve', '--help']\n"
        "from seqloom.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'torch' not in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
