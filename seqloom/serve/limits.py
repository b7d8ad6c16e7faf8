"""Every limit of the server, in one object. Each is tested at its value and one beyond; docs/serving.md lists them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

KB, MB = 1 << 10, 1 << 20
PORT = 8321


@dataclass(frozen=True, kw_only=True)
class Limits:
    body: int = MB  # bytes of a request body
    upload: int = 200 * MB  # bytes of an uploaded file
    login: int = 4 * KB  # bytes of a body of POST /session, which needs no token
    header_bytes: int = 16 * KB  # bytes of all headers, names included
    headers: int = 64  # header lines
    url: int = 4 * KB  # bytes of path and query
    depth: int = 32  # nested lists and objects in JSON
    digits: int = 40  # of a number in JSON
    error: int = 2 * KB  # bytes of an error answer
    in_flight: int = 256  # requests that are worked on at once
    queue: int = 256  # requests that wait for a place; more get 503
    connections: int = 2048  # open connections; more are closed at once
    read_seconds: float = 10.0  # until all headers, and then the whole body, have arrived
    idle_seconds: float = 30.0  # without a request on an open connection, or without reading an answer
    total_seconds: float = 120.0  # for a request and its answer
    stop_seconds: float = 8.0  # running requests may take after SIGTERM
    wrong_tokens: int = 20  # per minute and address
    sessions: int = 100  # logged-in browsers; the oldest is logged out
    session_seconds: float = 7 * 24 * 3600.0  # until a browser must log in again
    n: int = 8  # continuations of a prompt
    prompts: int = 64  # prompts in a body of completions
    rows: int = 10_000  # rows or texts in a body of predict, embed or embeddings
    messages: int = 1000  # messages of a chat
    stops: int = 4  # stop strings
    stop_characters: int = 64  # of a stop string
    top_logprobs: int = 20  # alternatives per token
    top_k: int = 1_000_000  # of the vocabulary
    new_tokens: int = 32_768  # of a model without a limit of its own
    unread: int = MB  # bytes of an answer that wait in the server for a client that reads slowly
    pages: int = 100  # explanations and answers kept as pages
    page_bytes: int = 20 * MB  # of all these pages
    frame: int = 64 * MB  # bytes of a message of a model process
    start_seconds: float = 120.0  # for loading a model
    hang_seconds: float = 120.0  # without a sign of life of a busy model process
    look_seconds: float = 300.0  # that the process for explanations is kept without being asked
    predictions: int = 64 * MB  # bytes of the predictions in one answer

    def facts(self) -> dict[str, float]:
        return asdict(self)
