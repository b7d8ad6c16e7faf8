"""What is served: a run or an index, opened, and the facts that are told about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import torch

from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State, flatten_state
from seqloom.data.shapes.columns import roles_of
from seqloom.decode.batcher import Batcher
from seqloom.decode.rows import Request
from seqloom.layers.packed import pack
from seqloom.runs.durable import digests
from seqloom.runs.run import Run, load
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import NoTokenizer
from seqloom.train.memory import keep_memory

_PROBED = 64  # tokens


@dataclass
class Served:
    facts: Json
    run: Run | None = None
    asking: Any = None  # of an index (retrieve/answering.py)
    bytes_at: Mapping[int, int] | None = None  # of the state of one row, after some numbers of tokens

    def state_bytes(self, tokens: int) -> int:
        """Of one row after this many tokens: states are constant or grow evenly, up to the limit of the model."""
        if self.bytes_at is None or self.run is None:
            return 0
        tokens = min(tokens, self.run.model.limit or tokens)
        (one, small), (other, large) = self.bytes_at.items()
        return max(0, round(small + (large - small) * (tokens - one) / (other - one)))


def open_served(opening: Json) -> Served:
    keep_memory()  # states grow and shrink at every step
    if opening.get("threads"):
        torch.set_num_threads(int(opening["threads"]))
    if opening.get("kind") == "index":
        return _open_index(str(opening["open"]))
    return _open_run(str(opening["open"]), bool(opening.get("int8")))


def _open_index(path: str) -> Served:
    from seqloom.retrieve.answering import Asking
    from seqloom.retrieve.index import Index

    index = Index.open(path)
    asking = Asking(index)
    return Served({"kind": "index", **index.counts(), "encoder": asking.encoder}, asking=asking)


def _open_run(path: str, int8: bool) -> Served:
    run = load(path, int8=int8)
    run.say = lambda text: None
    pack(run.model)
    _warm(run)
    sizes = _state_sizes(run.model) if run.task.verb == "generate" else None
    tokenizer = run.tokenizer
    facts: Json = {
        "task": run.task.name,
        "verb": run.task.verb,
        "architecture": run.config.model["name"],
        "parameters": run.summary.get("parameters", 0),  # of int8 layers the model itself has none
        "limit": run.model.limit,
        "chat": bool(getattr(tokenizer, "template", "")),
        "embeds": isinstance(tokenizer, Tokenizer) and _embeds(run.model),
        "tokenizer": getattr(tokenizer, "kind", None),
        "vocabulary": getattr(tokenizer, "size", None),
        "columns": columns(run),
        "score": _score(run),
        "version": _version(run),
    }
    found = Served(facts, run, bytes_at=sizes)
    found.facts["state_bytes"] = found.state_bytes(_PROBED) if sizes else None
    return found


def columns(run: Run) -> list[str]:
    """What a row to predict from has: the roles of texts, or the columns beside measurements, whose names are free."""
    shape, options = run.material.shape, run.material.options
    if run.task.verb == "generate":
        return []
    if shape.tokenizer is not NoTokenizer:
        return [
            first_role(run),
            *(role for role, option in shape.beside.items() if getattr(options, option) is not None),
        ]
    beside = [option for option in map(shape.columns.__getitem__, roles_of(shape)) if option not in shape.parts]
    named = [getattr(options, option, None) for option in beside]
    return [column.strip() for names in named if names for column in str(names).split(",")]


def first_role(run: Run) -> str:
    """Of the text that is read."""
    return next(iter(roles_of(run.material.shape)), "text")


def _score(run: Run) -> Json | None:
    score, parts = run.task.main_score, run.summary.get("scores", {})
    value = next((parts[part][score.name] for part in ("test", "valid") if score.name in parts.get(part, {})), None)
    if value is None:
        return None
    return {"name": score.name, "value": value, "title_en": score.title[0], "title_zh": score.title[1]}


def _version(run: Run) -> str:
    text = json.dumps(sorted(digests(run.folder.model_files()).items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _warm(run: Run) -> None:
    """Write two tokens, so that no request waits for kernels, which a machine compiles once."""
    if run.task.verb != "generate":
        return
    with suppress(Exception):  # whatever it is, requests will be told
        batcher = Batcher(run.model, 1)
        batcher.add(0, Request(prompt=[0], max_new=2))
        while batcher.busy:
            batcher.step()


@torch.inference_mode()
def _state_sizes(model: SequenceModel) -> dict[int, int]:
    most = min(2 * _PROBED, model.limit or 2 * _PROBED, model.reach or 2 * _PROBED)
    found = {}
    for length in sorted({max(1, most // 2), max(2, most)}):
        state: State = model.follow(torch.ones(1, length, dtype=torch.long, device=model.device))[1]
        found[length] = sum(t.nbytes for t in flatten_state(state).values())
    return found


@torch.inference_mode()
def _embeds(model: SequenceModel) -> bool:
    try:
        model.represent(torch.ones(1, 1, dtype=torch.long, device=model.device))
    except (NotImplementedError, RuntimeError, IndexError):
        return False
    return True


def run_of(served: Served) -> Run:
    return cast(Run, served.run)
