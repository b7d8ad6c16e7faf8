"""What reaches the application and what does not: tokens, hosts, pages of other sites, sizes; headers of answers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from serve_toys import AUTHORIZED, TOKEN, Running, head, serving

from seqloom.serve.limits import KB

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"]
OPEN = {("GET", "/health"), ("GET", "/"), ("GET", "/static/{name:path}"), ("POST", "/session")}  # the written list
EXAMPLE = {"{name:path}": "main.js", "{name}": "book"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    how = {"runs": tmp_path_factory.mktemp("runs"), "wrong_tokens": 10**6, "read_seconds": 1.0}
    with serving("book", "chat", "label", indexes=["notes"], **how) as running:
        yield running


def paths(server: Running) -> list[str]:
    found = {route.path for route in server.guard.routes}
    assert len(found) > 12
    return sorted(found)


def filled(path: str) -> str:
    for name, value in EXAMPLE.items():
        path = path.replace(name, value)
    return path.replace("{id}", "1")


WITHOUT = {
    "no": {},
    "wrong": {"Authorization": "Bearer wrong"},
    "empty": {"Authorization": ""},
    "nothing after the scheme": {"Authorization": "Bearer "},
    "lower case": {"Authorization": f"bearer {TOKEN}"},
    "basic": {"Authorization": f"Basic {TOKEN}"},
    "bare": {"Authorization": TOKEN},
    "upgrade": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"},
    "cookie": {"Cookie": f"seqloom_session={TOKEN}"},
    "proxy": {"X-Forwarded-For": "127.0.0.1", "X-Original-URL": "/health"},
}  # fmt: skip


@pytest.mark.parametrize("way", WITHOUT)
def test_every_route_and_method_needs_the_token(server: Running, way: str) -> None:
    for path, method in itertools.product(paths(server), METHODS):
        found = server.ask(method, filled(path), headers=WITHOUT[way], token=False)
        if (method, path) in OPEN:
            assert found.status in (200, 304, 400), (method, path, found)  # POST /session without a body: 400
        else:
            assert found.status in (401, 403), (method, path, found)


@pytest.mark.parametrize(
    "twist", ["{}?token=T", "/{}", "{}/", "/%2e{}", "/.{}", "/static/..{}", "/static/%2e%2e{}", "{}%00", "{};x"]
)
def test_a_twisted_path_needs_the_token_too(server: Running, twist: str) -> None:
    for path in paths(server):
        route = twist.replace("T", TOKEN).format(filled(path))
        if ("GET", path) in OPEN and (twist == "{}?token=T" or (path.startswith("/static") and "static" not in twist)):
            continue  # the list of files is open, and so is that a file is not on it
        assert server.ask("GET", route, token=False).status in (401, 403), route
        if "?" not in twist:  # else it is the route itself, which may take long
            assert server.ask("GET", route).status in (200, 400, 404, 405), route


def test_a_token_given_twice_or_in_the_query_is_none(server: Running) -> None:
    twice = [("Host", "localhost"), ("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
    assert server.raw(head("GET", "/v1/models", twice)).status == 401
    assert server.ask("GET", f"/v1/models?api_key={TOKEN}", token=False).status == 401
    assert server.ask("GET", "/v1/models").status == 200


GOOD_HOSTS = [
    "localhost",
    "localhost:PORT",
    "LocalHost:PORT",
    "127.0.0.1",
    "127.0.0.1:PORT",
    "[::1]:PORT",
    "[::1]",
    "localhost:1",
]
BAD_HOSTS = [
    "evil", "evil:PORT", "", ":PORT", "localhost.", "localhost.:PORT", "localhost.evil", "127.0.0.1.evil",
    "evil.localhost", "127.0.0.2", "[::2]", "0.0.0.0:PORT", "localhost:99999", "localhost:x", "a@localhost",
    "localhost@evil", "localhost/evil", "localhost,evil", " ", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]",
]  # fmt: skip
BAD_ORIGINS = [
    "http://evil",
    "null",
    "http://localhost.evil:PORT",
    "http://localhost:1",
    "file://",
    "",
    "http://localhost:PORT/",
    "http://evil@localhost:PORT",
]
SITES = ["cross-site", "same-site", "", "Cross-Site", "nonsense"]


def test_no_hostile_host_passes(server: Running) -> None:
    count = 0
    for host, method, path in itertools.product(BAD_HOSTS, METHODS, ["/v1/models", "/health", "/", "/session"]):
        headers = {"Host": host.replace("PORT", str(server.port)), **AUTHORIZED, "Connection": "close"}
        found = server.raw(head(method, path, headers))
        assert found and found.status in (400, 403) and TOKEN.encode() not in found.body, (host, method, path, found)
        count += 1
    assert count >= 300


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_every_own_host_passes_with_and_without_port(server: Running, host: str) -> None:
    host = host.replace("PORT", str(server.port))
    for headers in ({}, {"Origin": f"http://{host}"}, {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}):
        assert server.ask("GET", "/v1/models", headers={"Host": host, **headers}).status == 200, headers
        assert (
            server.ask("POST", "/v1/embeddings", {"model": "book", "input": "a"}, {"Host": host, **headers}).status
            == 200
        )


def test_no_page_of_another_origin_or_site_passes(server: Running) -> None:
    count = 0
    places = [("GET", "/v1/models"), ("POST", "/v1/completions"), ("POST", "/session"), ("DELETE", "/api/server")]
    places += [("PUT", "/v1/models"), ("PATCH", "/v1/models"), ("OPTIONS", "/v1/completions"), ("GET", "/")]
    kinds = ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    for (method, path), kind in itertools.product(places, kinds):
        hostile = [{"Origin": origin.replace("PORT", str(server.port))} for origin in BAD_ORIGINS]
        hostile += [{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"} for site in SITES]
        for headers in hostile:
            found = server.ask(method, path, b"{}", {"Content-Type": kind, **headers})
            assert found.status == 403, (method, path, kind, headers, found)
            count += 1
    assert count >= 300
    lead = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
    assert server.ask("GET", "/", headers=lead).status == 200  # a link on another page of this machine
    assert server.ask("GET", "/", headers=lead | {"Sec-Fetch-Site": "cross-site"}).status == 403


@pytest.mark.parametrize(
    "target", ["http://evil/v1/models", "http://localhost/v1/models", "//evil/v1/models", "@localhost/v1/models", "*"]
)
def test_a_target_that_is_no_path_is_refused(server: Running, target: str) -> None:
    for method in ("GET", "OPTIONS"):
        found = server.raw(head(method, target, {"Host": "localhost", **AUTHORIZED}))
        assert found and found.status == 400


def test_a_host_is_needed_once(server: Running) -> None:
    assert server.raw(b"GET /health HTTP/1.0\r\n\r\n").status == 403
    assert server.raw(b"GET /health HTTP/1.1\r\n\r\n").status == 400
    assert server.raw(head("GET", "/health", [("Host", "localhost"), ("Host", "localhost")])).status == 400


def test_no_answer_allows_another_origin_and_every_answer_has_the_headers(server: Running) -> None:
    answers = [
        server.ask("GET", "/"), server.ask("GET", "/health"), server.ask("GET", "/v1/models", token=False),
        server.ask("GET", "/nosuch"), server.ask("PUT", "/v1/models"), server.raw(b"\x00\r\n\r\n"),
        server.ask("POST", "/session", {"token": TOKEN}), server.ask("OPTIONS", "/v1/models"),
        server.ask("GET", "/", headers={"Host": "evil"}), server.ask("GET", "/" + "x" * 5000),
        server.ask("POST", "/v1/completions", {"model": "book", "prompt": "a", "stream": True}),
        server.ask("GET", "/static/main.js"), server.ask("POST", "/v1/completions", b"x" * (1 << 20) + b"x"),
        server.ask("POST", "/v1/completions", b"{", {"Content-Type": "text/plain"}),
    ]  # fmt: skip
    for found in answers:
        assert found is not None
        assert "frame-ancestors 'none'" in found.headers["content-security-policy"]
        assert "default-src 'self'" in found.headers["content-security-policy"]
        assert found.headers["x-content-type-options"] == "nosniff" and "server" not in found.headers
        assert found.headers["referrer-policy"] == "no-referrer"
        assert not [name for name in found.headers if name.startswith("access-control")]


def test_a_browser_logs_in_and_needs_the_second_value_to_change_anything(server: Running) -> None:
    assert server.ask("POST", "/session", {"token": "wrong"}, token=False).status == 401
    with server.connect() as wire:
        data = f'{{"token": "{TOKEN}"}}'.encode()
        wire.sendall(
            head(
                "POST",
                "/session",
                {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(data))},
            )
            + data
        )
        lines = wire.recv(1 << 16).decode().split("\r\n")
    cookies = [line.partition(": ")[2] for line in lines if line.lower().startswith("set-cookie")]
    session, csrf = sorted(cookies, reverse=True)
    assert "HttpOnly" in session and "HttpOnly" not in csrf
    assert all("samesite=strict" in each.lower() for each in cookies)
    value = csrf.partition("=")[2].partition(";")[0]
    jar = "; ".join(each.partition(";")[0] for each in cookies)
    body = {"model": "book", "input": "a"}
    assert server.ask("GET", "/v1/models", headers={"Cookie": jar}, token=False).status == 200
    for headers, status in [
        ({"Cookie": jar}, 403),
        ({"Cookie": jar, "X-CSRF-Token": "wrong"}, 403),
        ({"Cookie": jar, "X-CSRF-Token": value}, 200),
        ({"Cookie": jar.replace(value, "other"), "X-CSRF-Token": value}, 403),
        ({"Cookie": f"seqloom_csrf={value}", "X-CSRF-Token": value}, 401),
    ]:
        assert server.ask("POST", "/v1/embeddings", body, headers, token=False).status == status, headers


def sized(size: int) -> bytes:
    """A valid body of this many bytes."""
    return b'{"model": "book", "input": "a"}'.ljust(size)


def test_a_body_of_the_limit_passes_and_one_byte_more_does_not(server: Running) -> None:
    most = server.state.limits.body
    assert server.ask("POST", "/v1/embeddings", sized(most)).status == 200
    assert server.ask("POST", "/v1/embeddings", sized(most + 1)).status == 413
    chunked = {"Host": "localhost", "Content-Type": "application/json", "Transfer-Encoding": "chunked", **AUTHORIZED}
    for size, status in ((most, 200), (most + 1, 413)):
        data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunks(sized(size))) + b"0\r\n\r\n"
        assert server.raw(head("POST", "/v1/embeddings", chunked) + data).status == status
    login = b'{"token": "%s"}' % TOKEN.encode()
    assert server.ask("POST", "/session", login.ljust(server.state.limits.login), token=False).status == 200
    assert server.ask("POST", "/session", login.ljust(server.state.limits.login + 1), token=False).status == 413


def chunks(data: bytes) -> list[bytes]:
    return [data[start : start + 60_000] for start in range(0, len(data), 60_000)]


def test_an_endless_body_is_not_read(server: Running) -> None:
    """By its length it is refused before a byte of it is read, without a length soon after the limit."""
    headers = {"Host": "localhost", "Content-Type": "application/json", **AUTHORIZED}
    found = server.raw(head("POST", "/v1/completions", headers | {"Content-Length": str(10 << 20)}))
    assert found.status == 413 and found.headers["connection"] == "close"
    with server.connect() as wire:
        wire.sendall(head("POST", "/v1/completions", headers | {"Transfer-Encoding": "chunked"}))
        sent, part = 0, b"10000\r\n" + b"x" * 65536 + b"\r\n"
        with pytest.raises(ConnectionError):
            while sent < 64 << 20:
                wire.sendall(part)
                sent += len(part)
        assert sent < 16 << 20  # what the buffers of the kernel hold comes on top


def test_headers_and_urls_have_limits(server: Running) -> None:
    limits = server.state.limits
    own = {"Host": "localhost", **AUTHORIZED}
    many = own | {f"X-{number}": "1" for number in range(limits.headers - len(own))}
    assert server.raw(head("GET", "/v1/models", many)).status == 200
    assert server.raw(head("GET", "/v1/models", many | {"X-More": "1"})).status == 431
    size = sum(len(name) + len(value) for name, value in own.items())
    large = own | {"X": "x" * (limits.header_bytes - size - 1)}
    assert server.raw(head("GET", "/v1/models", large)).status == 200
    assert server.raw(head("GET", "/v1/models", large | {"X": large["X"] + "x"})).status == 431
    url = "/v1/models?" + "x" * (limits.url - 11)
    assert server.raw(head("GET", url, own)).status == 200
    assert server.raw(head("GET", url + "x", own)).status == 414
    assert server.raw(head("GET", "/v1/models", own | {f"X-{n}": "1" for n in range(1000)})).status == 431
    assert server.raw(head("GET", "/v1/models", own | {"X": "x" * (1 << 20)})).status == 431
    assert server.raw(head("GET", "/v1/models?" + "&".join(f"f{n}=1" for n in range(10_000)), own)).status in (414, 431)
    form = "&".join(f"f{n}=1" for n in range(100_000)).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert server.ask("POST", "/v1/completions", form[:1000], kind).status == 415
    assert server.ask("POST", "/v1/completions", form, kind).status in (413, 415)


def test_slow_clients_are_closed(server: Running) -> None:
    """Headers that do not end, a body that does not come, a connection without a word."""
    headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": "100", **AUTHORIZED}
    for data, status in ((b"GET / HT", 408), (head("POST", "/v1/completions", headers) + b"{", 408), (b"", 408)):
        started = time.monotonic()
        found = server.raw(data, timeout=30)
        assert found is not None and found.status == status
        assert time.monotonic() - started < 25  # the limit is 1 s here


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ""]
)
def test_a_body_has_to_be_json(server: Running, kind: str) -> None:
    assert server.ask("POST", "/v1/embeddings", sized(100), {"Content-Type": kind}).status == 415
    assert (
        server.ask("POST", "/v1/embeddings", sized(100), {"Content-Type": "application/json; charset=utf-8"}).status
        == 200
    )
    assert server.ask("POST", "/v1/embeddings", sized(100), {"Content-Encoding": "gzip"}).status == 415


def test_files_of_the_page_are_compressed_kept_and_nothing_else(server: Running) -> None:
    whole = server.ask("GET", "/static/main.js", token=False)
    assert whole.headers["content-type"].startswith("text/javascript") and len(whole.body) > KB
    packed = server.ask("GET", "/static/main.js", token=False, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < len(whole.body) / 2
    known = server.ask("GET", "/static/main.js", token=False, headers={"If-None-Match": whole.headers["etag"]})
    assert known.status == 304 and not known.body
    assert server.ask("GET", "/", token=False).headers["content-type"].startswith("text/html")


def test_no_name_leads_out_of_the_folder_of_the_page(server: Running) -> None:
    names = [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "/etc/passwd",
        "%2fetc/passwd",
        "..\\app.py",
        "nosuch.js",
        "x/../../app.py",
    ]
    names += [
        "....//app.py",
        "%252e%252e/app.py",
        "app.py",
        "__init__.py",
        "a\x7f",
        "%c0%ae%c0%ae/app.py",
        "main.js%00",
    ]
    seen = {server.ask("GET", f"/static/{name}").body for name in names}
    assert len(seen) <= 3 and not any(b"import" in each or b"root" in each for each in seen)
