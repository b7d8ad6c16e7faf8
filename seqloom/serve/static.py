"""The files of the page: each is read once and sent with its type and an ETag, gzipped for clients that accept it."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.serve.faults import Refused

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_NONE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>seqloom</title><p>This installation has no page.</html>"
)


class File(NamedTuple):
    data: bytes
    packed: bytes  # by gzip
    etag: str
    kind: str


def names() -> dict[str, Path]:
    """The files that may be asked for: a list, so that no name leads anywhere else."""
    return {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in TYPES}


@lru_cache(maxsize=256)
def load(name: str, changed: int) -> File:
    """`changed`: when; so that a changed file is read again."""
    path = names().get(name)
    data = path.read_bytes() if path else _NONE.encode()
    etag = f'"{hashlib.sha256(data).hexdigest()[:24]}"'
    return File(data, gzip.compress(data, 6, mtime=0), etag, TYPES[path.suffix if path else ".html"])


def respond(request: Any, name: str) -> Any:
    from starlette.responses import Response

    path = names().get(name)
    if (path is None or not path.is_file()) and name != "index.html":
        raise Refused(404, "no such file")
    file = load(name, path.stat().st_mtime_ns if path else 0)
    headers = {"etag": file.etag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    packs = "gzip" in request.headers.get("accept-encoding", "")
    if packs:
        headers["content-encoding"] = "gzip"
    return Response(file.packed if packs else file.data, headers=headers, media_type=file.kind)
