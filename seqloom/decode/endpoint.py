"""A chat endpoint that speaks OpenAI's protocol: openai:URL#MODEL, such as openai:http://127.0.0.1:8000/v1#llama.

Nothing is sent anywhere unless such a source is given. The key comes from the environment variable OPENAI_API_KEY and
is sent to that host only, past any proxy of the environment; it is never stored or shown.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from seqloom.core.errors import RunError, UserError

SCHEME = "openai:"
KEY = "OPENAI_API_KEY"
_TIMEOUT, _TRIES, _PAUSE, _LONGEST_PAUSE = 60.0, 5, 1.0, 30.0  # seconds, requests, seconds
_LATE = 2  # requests that may take too long: each is a minute
_MOST_BYTES, _PIECE = 1_000_000, 1 << 16  # of an answer
_MOST_TOKENS = 16  # that an answer may have, unless said otherwise
_PRINTABLE = "[!-~]+"  # ASCII without blanks: what an address and a header can hold

Chat = Sequence[Mapping[str, str]]  # messages: role and content


@dataclass(frozen=True)
class Endpoint:
    url: str
    model: str

    @classmethod
    def parse(cls, source: str) -> Endpoint:
        url, _, model = source.removeprefix(SCHEME).partition("#")
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
            valid = valid and not parts.query and (parts.port or 1) > 0
        except ValueError:
            valid = False
        if not valid or not model or not re.fullmatch(_PRINTABLE, url):
            raise UserError(
                f"{SCHEME}URL#MODEL: give an http or https address and the name of a model, without a password, "
                "a key or a query, for example openai:http://127.0.0.1:8000/v1#llama"
            )
        return cls(url.rstrip("/"), model)

    @property
    def shown(self) -> str:
        return f"{SCHEME}{self.url}#{self.model}"

    def ask(self, messages: Chat, stop: Sequence[str] = ("\n",), max_new: int = _MOST_TOKENS) -> str:
        """The answer to a chat: greedy, of at most `max_new` tokens, and up to a stop string."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages), "temperature": 0}
        body |= {"max_tokens": max_new} | ({"stop": list(stop)} if stop else {})
        data, late = json.dumps(body).encode(), 0
        for attempt in range(_TRIES):
            pause = min(_LONGEST_PAUSE, _PAUSE * 2**attempt)
            try:
                return self._content(self._send(data))
            except urllib.error.HTTPError as error:
                reason, again = f"{error.code} {error.reason}", error.code == 429 or error.code >= 500
                pause = min(_LONGEST_PAUSE, _seconds(error.headers.get("Retry-After"), pause))
                error.close()
                if not again:
                    hint = f"; is {KEY} set and right?" if error.code in (401, 403) else ""
                    raise UserError(f"{self.shown}: refused the request ({reason}){hint}") from None
            except (OSError, HTTPException) as error:
                cause = getattr(error, "reason", error)
                late += isinstance(cause, TimeoutError)
                reason = " ".join(str(getattr(cause, "strerror", None) or cause).split())[:120] or "no answer"
            if attempt + 1 == _TRIES or late == _LATE:
                break
            time.sleep(pause)
        raise RunError(
            f"{self.shown}: no answer after {attempt + 1} requests ({reason}); run the same command again later"
        )

    def _send(self, data: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "seqloom"}
        if key := _key():
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self.url}/chat/completions", data, headers, method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)  # a proxy would see the key
        ends = time.monotonic() + _TIMEOUT
        with opener.open(request, timeout=_TIMEOUT) as response:
            found = b""
            while len(found) <= _MOST_BYTES and (piece := response.read1(_PIECE)):
                found += piece
                if time.monotonic() > ends:  # a byte now and then would keep the connection open for days
                    raise TimeoutError(f"not finished after {_TIMEOUT:.0f} seconds")
        return found

    def _content(self, data: bytes) -> str:
        try:
            content = json.loads(data)["choices"][0]["message"]["content"] if len(data) <= _MOST_BYTES else None
            if isinstance(content, str):
                return content
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        raise UserError(f"{self.shown}: its answer is not that of an OpenAI-compatible chat endpoint")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The key and the texts go to the host that was named, and nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        raise UserError(f"{SCHEME}{req.full_url}: it redirects to another address ({code}); give that one")


def _key() -> str:
    """The key, or nothing; refused without showing it if it cannot be sent."""
    key = os.environ.get(KEY, "").strip()
    if key and not re.fullmatch(_PRINTABLE, key):
        raise UserError(f"{KEY}: a key is one line of ASCII characters without blanks; this one is not, set it again")
    return key


def _seconds(said: str | None, otherwise: float) -> float:
    try:
        return max(0.0, float(said)) if said else otherwise
    except ValueError:
        return otherwise
