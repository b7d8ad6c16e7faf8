"""What is checked of a request before anything of it is read but its head. Each check raises Refused.

The order is part of the rules: the Host before everything else, then the page that asks, sizes, the token, the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from seqloom.serve.addresses import fetch_is_own, origin_is_host, path_is_plain, split_host
from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits
from seqloom.serve.token import Attempts, Session, Sessions, digest, same

SESSION_COOKIE, CSRF_COOKIE, CSRF_HEADER = "seqloom_session", "seqloom_csrf", b"x-csrf-token"
UPLOADS = "/api/uploads"
JSON = b"application/json"
PUBLIC = frozenset({("GET", "/health"), ("GET", "/"), ("POST", "/session")})
PUBLIC_FOLDER = "/static/"  # GET only


class Head(NamedTuple):
    """Method, path and headers of a request."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    address: str

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Head:
        raw = scope.get("raw_path") or scope["path"].encode()
        address = (scope.get("client") or ("", 0))[0]
        return cls(scope["method"], scope["path"], raw, scope.get("query_string", b""), scope["headers"], address)

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]

    def one(self, name: bytes) -> str:
        """A header that may stand there once; empty if there is none."""
        found = self.all(name)
        if len(found) > 1:
            raise Refused(400, f"more than one header {name.decode().title()}", code="bad_headers")
        return found[0].decode("latin-1") if found else ""

    @property
    def public(self) -> bool:
        inside = self.path.startswith(PUBLIC_FOLDER) and path_is_plain(self.raw_path)
        return (self.method, self.path) in PUBLIC or (self.method == "GET" and inside)

    @property
    def upload(self) -> bool:
        return self.method == "POST" and self.path == UPLOADS

    @property
    def has_body(self) -> bool:
        lengths = self.all(b"content-length")
        return bool(self.all(b"transfer-encoding")) or any(length.strip(b"0 ") for length in lengths)


def check_host(head: Head, allowed: frozenset[str]) -> None:
    hosts = head.all(b"host")
    name = split_host(hosts[0].decode("latin-1"))[0] if len(hosts) == 1 else ""
    if name not in allowed:
        raise Refused(403, "this server does not answer to that Host; allow names with --allow-host", code="host")


def check_page(head: Head) -> None:
    """Only pages of this server may ask, and whoever is no page at all."""
    host = head.all(b"host")[0].decode("latin-1")
    for origin in head.all(b"origin"):
        if not origin_is_host(origin.decode("latin-1"), host):
            raise Refused(403, "the request comes from a page of another origin", code="origin")
    sites, modes = head.all(b"sec-fetch-site"), head.all(b"sec-fetch-mode")
    mode = modes[0].decode("latin-1") if modes else ""
    for site in sites:
        if not fetch_is_own(site.decode("latin-1"), mode, head.method, head.path):
            raise Refused(403, "the request comes from a page of another site", code="cross_site")


def check_size(head: Head, limits: Limits) -> None:
    if len(head.raw_path) + len(head.query) + bool(head.query) > limits.url:
        raise Refused(414, f"a URL of more than {limits.url:,} bytes", close=True)
    size = sum(len(name) + len(value) for name, value in head.headers)
    if len(head.headers) > limits.headers or size > limits.header_bytes:
        raise Refused(431, f"more than {limits.headers} headers or {limits.header_bytes:,} bytes of them", close=True)


def check_token(head: Head, token: bytes | None, sessions: Sessions, attempts: Attempts) -> None:
    """`token`: its digest; None: none is needed. A cookie serves as well; changes then need the CSRF header too."""
    if head.public or token is None:
        return
    given = head.all(b"authorization")
    if given:
        scheme, _, text = given[0].partition(b" ")
        if len(given) == 1 and scheme == b"Bearer" and same(digest(text.strip(b" ")), token):
            return
        raise wrong_token(head.address, attempts)
    cookies = cookies_of(head)
    if SESSION_COOKIE not in cookies:
        raise Refused(401, "this needs the token: Authorization: Bearer TOKEN")
    session = sessions.find(cookies[SESSION_COOKIE])
    if session is None:
        raise wrong_token(head.address, attempts, "the session has ended; open the address with the token again")
    if head.method not in ("GET", "HEAD"):
        _check_csrf(head, session, cookies.get(CSRF_COOKIE, ""))


def wrong_token(address: str, attempts: Attempts, message: str = "wrong token") -> Refused:
    if attempts.wrong(address):
        return Refused(429, "too many wrong tokens; wait a minute", wait=60)
    return Refused(401, message)


def cookies_of(head: Head) -> dict[str, str]:
    pairs = [part.strip().partition("=") for line in head.all(b"cookie") for part in line.decode("latin-1").split(";")]
    return {name: value for name, _, value in reversed(pairs)}


def _check_csrf(head: Head, session: Session, cookie: str) -> None:
    headers = head.all(CSRF_HEADER)
    wanted = digest(session.csrf.encode())
    twice = [headers[0], cookie.encode("latin-1", "replace")] if len(headers) == 1 else []
    if not twice or not all(same(digest(value), wanted) for value in twice):
        raise Refused(403, "a request by cookie needs the header X-CSRF-Token", code="csrf")


def check_form(head: Head, limits: Limits) -> int:
    """Path, length and content type; returns the most bytes that the body may have."""
    if not path_is_plain(head.raw_path):
        raise Refused(400, "not a plain path", code="bad_path")
    most = limits.upload if head.upload else limits.login if head.path == "/session" else limits.body
    length = head.one(b"content-length")
    if length and (not length.isdigit() or len(length) > 15):
        raise Refused(400, "not a content length", code="bad_headers", close=True)
    if length and int(length) > most:
        raise too_large(most)
    if head.one(b"content-encoding") not in ("", "identity"):
        raise Refused(415, "a compressed body; send it as it is", close=True)
    kind = head.one(b"content-type").partition(";")[0].strip().lower().encode("latin-1")
    if head.has_body and not head.upload and kind != JSON:
        raise Refused(415, "not application/json", close=True)
    return most


def too_large(most: int) -> Refused:
    return Refused(413, f"a body of more than {most:,} bytes", close=True)
