"""A model process without a model: it speaks the wire of seqloom/serve/children, and fails on demand.

Run as `python serve_worker.py FD`. Its text is a function of the prompt. What it does beside that stands in the prompt:

    crash      the process kills itself            after:N   ... before token N, not at once
    hang       it never answers again              flood     large events, as fast as they can be written
    slow:S     S seconds between tokens            broken    what is sent is no frame
    user, failed, busy                             an error of that kind

And in the name of the folder: `cannot` cannot be opened, `late` takes half a second to open; the content of
FOLDER/version is the version of the weights.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from seqloom.serve.children import frames

LIMIT = 1000
WORDS = ["the", " cat", " sat", " on", " a", " mat", "\n", " 猫"]


def facts(folder: Path, kind: str) -> dict[str, Any]:
    if kind == "index":
        return {"documents": 2, "version": "index"}
    label = folder.name.startswith("label")
    version = folder / "version"
    return {
        "task": "classification" if label else "language_model", "verb": "predict" if label else "generate",
        "architecture": "gru", "parameters": 1234, "limit": None if "endless" in folder.name else LIMIT,
        "chat": "chat" in folder.name, "embeds": not label, "tokenizer": "words", "vocabulary": len(WORDS),
        "columns": ["text"], "score": None, "version": version.read_text() if version.exists() else "v1",
        "state_bytes": 256,
    }  # fmt: skip


def token(prompt: str, number: int) -> int:
    return hashlib.sha256(f"{prompt} {number}".encode("utf-8", "surrogatepass")).digest()[0] % len(WORDS)


class Worker:
    def __init__(self, wire: socket.socket) -> None:
        self._wire, self._lock, self._active = wire, threading.Lock(), set[int]()
        self.folder = Path()

    def send(self, *events: dict[str, Any]) -> None:
        with self._lock:
            frames.send(self._wire, {"events": list(events)})

    def run(self) -> None:
        opening = frames.receive(self._wire) or {}
        self.folder = Path(opening["open"])
        if "cannot" in self.folder.name:
            frames.send(self._wire, {"failed": {"message": f"{self.folder}: damaged"}})
            return
        time.sleep(0.5 if "late" in self.folder.name else 0)
        frames.send(self._wire, {"ready": facts(self.folder, opening["kind"])})
        while (request := frames.receive(self._wire)) is not None:
            if request["op"] == "cancel":
                if request["id"] in self._active:
                    self._active.discard(request["id"])
                    self.send({"id": request["id"], "done": {}})
            elif request["op"] == "stats":
                self.send(
                    {"id": request["id"], "stats": {"active": len(self._active)}}, {"id": request["id"], "done": {}}
                )
            else:
                self._active.add(request["id"])
                threading.Thread(target=self._answer, args=(request,), daemon=True).start()
        os._exit(0)

    def _answer(self, request: dict[str, Any]) -> None:
        number = request["id"]
        said = str(request)
        for kind in ("user", "failed", "busy"):
            if f"<{kind}>" in said:
                message = f"{self.folder}/model: cannot use {said[:2000]} at 0x7fff12345678 on 10.0.0.1:80"
                self._active.discard(number)
                self.send({"id": number, "error": {"kind": kind, "message": message}})
                return
        if "<broken>" in said:
            with self._lock:
                self._wire.sendall(b"\xff\xff\xff\xff")
        for event in getattr(self, f"_{request['op']}")(request):
            if number not in self._active:
                return
            self.send({"id": number} | event)
        self._active.discard(number)

    def _generate(self, request: dict[str, Any]):
        prompt = request.get("prompt") or str(request.get("ids") or request.get("messages") or "")
        pause = re.search(r"<slow:([\d.]+)>", prompt)
        after = int(found[1]) if (found := re.search(r"<after:(\d+)>", prompt)) else 0
        yield {"started": {"prompt_tokens": len(prompt.split()) or 1}}
        for step in range(request["max_new"]):
            if "<crash>" in prompt and step >= after:
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGKILL)
            while "<hang>" in prompt and step >= after:
                time.sleep(1)
            for index in range(request["n"]):
                found = token(f"{prompt} {request['seed']} {index}", step)
                event: dict[str, Any] = {"index": index, "text": WORDS[found] * (20_000 if "<flood>" in prompt else 1)}
                if request["logprobs"] is not None:
                    top = [[WORDS[(found + n) % len(WORDS)], -0.5 - n] for n in range(request["logprobs"])]
                    event["token"] = {"id": found, "text": WORDS[found], "logprob": -0.5, "top": top}
                yield event
            if pause:
                time.sleep(float(pause[1]))
        for index in range(request["n"]):
            yield {"index": index, "end": "length"}
        tokens = request["max_new"] * request["n"]
        yield {"done": {"prompt_tokens": len(prompt.split()) or 1, "completion_tokens": tokens, "seconds": 0.1}}

    def _predict(self, request: dict[str, Any]):
        if pause := re.search(r"<slow:([\d.]+)>", str(request)):
            time.sleep(float(pause[1]))
        yield {"rows": [{"label": "good", "probability": 0.75} for _ in request["rows"]]}
        yield {"done": {}}

    def _explain(self, request: dict[str, Any]):
        yield {"explanation": {"input": "seen", "pid": os.getpid()}, "html": "<!doctype html><p>explained"}
        yield {"done": {}}

    def _embed(self, request: dict[str, Any]):
        yield {"vectors": [[0.6, 0.8, 0.0] for _ in request["texts"]], "tokens": len(request["texts"])}
        yield {"done": {}}

    def _ask(self, request: dict[str, Any]):
        yield {"reply": {"text": "three years"}, "html": "<!doctype html><p>three years"}
        yield {"done": {}}


if __name__ == "__main__":
    Worker(socket.socket(fileno=int(sys.argv[1]))).run()
