"""Who is asked, and from where: the Host, Origin and Sec-Fetch headers, and the shape of a path."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from seqloom.core.errors import UserError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9]([a-z0-9_.-]{0,251}[a-z0-9])?)(?::([0-9]{1,5}))?")
_DEFAULT = {"http": "80", "https": "443"}
_SITES = {"same-origin", "none"}
_NOT_IN_PATHS = re.compile(rb"//|\\|%2e|%2f|%5c|%25|%00|%0[0-9a-f]|%1[0-9a-f]|%7f|/\.{1,2}(?:/|$)", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """As it stands in a Host header, without port: lower case, IPv6 in brackets."""
    text = host.lower()
    return f"[{text}]" if ":" in text and not text.startswith("[") else text


def allowed_hosts(host: str, more: Iterable[str]) -> frozenset[str]:
    """The names under which the server may be addressed."""
    own = {host_name(host)} - {"0.0.0.0", "[::]"}
    for name in more:
        found = _HOST.fullmatch(host_name(name))
        if not found or found[3]:
            raise UserError(f"--allow-host {name[:60]}: not a host name; give a name or an address, without port")
    return LOOPBACK | own | {host_name(name) for name in more}


def split_host(value: str) -> tuple[str, str]:
    """Name and port (or nothing) of a Host header; two empty texts if it is none."""
    found = _HOST.fullmatch(value.lower())
    if not found or (found[3] and not 0 < int(found[3]) < 65536):
        return "", ""
    return found[1], found[3] or ""


def origin_is_host(origin: str, host: str) -> bool:
    """Whether a page of this origin was served under this Host; a port that is not said is that of the scheme."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT or origin.lower() != f"{parts.scheme}://{parts.netloc}".lower():
        return False
    name, port = split_host(parts.netloc)
    own, own_port = split_host(host)
    usual = _DEFAULT[parts.scheme]
    return bool(name) and (name, port or usual) == (own, own_port or usual)


def fetch_is_own(site: str, mode: str, method: str, path: str) -> bool:
    """A page of another site may at most lead to the start page; one of another port of this machine, too."""
    return site in _SITES or (site == "same-site" and (mode, method, path) == ("navigate", "GET", "/"))


def path_is_plain(raw: bytes) -> bool:
    return raw.startswith(b"/") and raw.isascii() and not _NOT_IN_PATHS.search(raw)
