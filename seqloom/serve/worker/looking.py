"""Requests that are not text: predictions, explanations, vectors, answers from documents.

Each is an iterator of events, which the process goes on with between two steps of decoding.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from seqloom.core.batch import pad
from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json, Row
from seqloom.runs.predicting import text_row
from seqloom.runs.run import Run
from seqloom.serve.worker.opening import Served, first_role, run_of
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import NoTokenizer

_AT_ONCE = 2048  # tokens of texts that become vectors together, padding included
_LONGEST = 2048  # tokens of a text that becomes a vector, of a model without a limit

Events = Iterator[Json]


def predict(served: Served, asked: Json) -> Events:
    run, rows, options = run_of(served), asked.get("rows"), asked.get("options") or {}
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise UserError("rows: give a list of at least one object")
    if run.material.shape.tokenizer is NoTokenizer:
        yield from _predict_table(run, rows, options)
        return
    run.task.check_options(options)
    given = (_text_row(run, row, number) for number, row in enumerate(rows, 1))
    yield from _told(run.task.predict(run.model, list(given), **options))


def predict_file(served: Served, asked: Json) -> Events:
    yield from _told(run_of(served).predict(str(asked["path"]), **(asked.get("options") or {})))


def explain(served: Served, asked: Json) -> Events:
    run, given = run_of(served), dict(asked.get("input") or {})
    text, patched = given.pop("text", None), given.pop("patch_with", None)
    row = given.pop("row", None)
    if row is not None and run.material.shape.tokenizer is NoTokenizer:
        raise UserError("row: a table cannot be explained here; use seqloom explain")
    own: Any = text if text is not None else None if row is None else _text_row(run, row, 1)
    if own is None:
        raise UserError("input: give a text or a row to explain")
    options = {name: value for name, value in given.items() if name in ("target", "against") and value is not None}
    beside = {name: given[name] for name in ("second", "passage") if given.get(name) is not None}
    views = {} if asked.get("views") is None else {"views": asked["views"]}
    found = run.explain(own, patch_with=patched, **options, **beside, **views)
    event = {"explanation": _plain(found.facts())}
    if asked.get("page"):
        from seqloom.explain.page import page

        event["html"] = page(found)
    yield event


def embed(served: Served, asked: Json) -> Events:
    """Unit vectors: the mean of the last hidden vectors over the tokens of each text."""
    run, texts = run_of(served), asked.get("texts")
    tokenizer = run.tokenizer
    if not served.facts.get("embeds") or not isinstance(tokenizer, Tokenizer):
        raise UserError("this model has no vectors of texts; choose another one")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise UserError("texts: give a list of at least one text")
    longest = min(most for most in (run.model.limit, run.model.reach, _LONGEST) if most)
    ids = [tokenizer.encode(text)[:longest].tolist() or [tokenizer.eos] for text in texts]
    found: list[list[float]] = [[] for _ in texts]
    for places in _batches([len(one) for one in ids]):
        for place, vector in zip(places, _vectors(run, [ids[n] for n in places]), strict=True):
            found[place] = vector
        yield {}
    yield {"vectors": found, "tokens": sum(map(len, ids))}


def ask(served: Served, asked: Json) -> Events:
    if served.asking is None:
        raise UserError("this is a run, not an index; it has no documents to ask")
    served.asking.k = max(1, min(100, int(asked.get("k") or 8)))
    reply = served.asking.ask(str(asked.get("question") or ""))
    yield {"reply": _plain(reply.facts), "html": reply.page()}


OPS: Mapping[str, Callable[[Served, Json], Events]] = {
    "predict": predict, "predict_file": predict_file, "explain": explain, "embed": embed, "ask": ask,
}  # fmt: skip


def _told(predictions: Iterable[Row]) -> Events:
    for row in predictions:
        yield {"rows": [_plain(row)]}


def _plain(value: Any) -> Any:
    """As standard JSON: without NaN and infinities."""
    return json.loads(to_json(value))


def _text_row(run: Run, row: Json, number: int) -> Row:
    """A row by the roles of its columns; the first of them may also be called `text`."""
    names = {"text", first_role(run)}
    texts = [value for name, value in row.items() if name in names]
    if len(texts) != 1 or not all(isinstance(value, str) for value in row.values()):
        raise UserError(f"row {number}: give {' and '.join(sorted(names))} once, as a text")
    return text_row(run.material, texts[0], number, **{name: v for name, v in row.items() if name not in names})


def _predict_table(run: Run, rows: list[Json], options: Json) -> Events:
    """Numbers are read from a file, as they were in training; where possible one in memory, as the disk may be full."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="seqloom-", dir=place) as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        try:
            yield from _told(run.predict(str(path), **options))
        except UserError as error:
            raise UserError(str(error).replace(str(path), "rows")) from None


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Texts of like length share a batch."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[place] * (len(batch) + 1) > _AT_ONCE:
            yield batch
            batch = []
        batch.append(place)
    yield batch


@torch.inference_mode()
def _vectors(run: Run, rows: list[list[int]]) -> list[list[float]]:
    inputs, mask = (t.to(run.model.device) for t in pad([torch.tensor(row) for row in rows]))
    hidden = run.model.represent(inputs, None if bool(mask.all()) else mask).float()
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    found: list[list[float]] = torch.nn.functional.normalize(mean, dim=-1).cpu().tolist()
    return found
