"""`merge`: a run that only adds to the weights of another becomes a plain run: adapters are added to these weights, and
a prompt is stored together with them.

The new folder stands on its own: it needs neither the other run nor peft, and everything that takes a run takes it,
`fit --from` included. Scores stay those that were measured before, from which merged adapters differ by rounding.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from safetensors.torch import save

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.layers import lora
from seqloom.runs import durable
from seqloom.runs.base import is_partial
from seqloom.runs.build import count_parameters
from seqloom.runs.folder import RunFolder
from seqloom.runs.run import Run, load
from seqloom.runs.settings import RunConfig
from seqloom.runs.winner import run_of
from seqloom.train.checkpoint import weights
from seqloom.train.settings import NO_ADAPTERS

_WEIGHTS = "model.safetensors"
_REPLACED = {durable.MANIFEST, lora.CONFIG, lora.WEIGHTS, _WEIGHTS}


def merge(run: str | Path, *, out: str | Path) -> Run:
    """Write a plain run to a new folder `out`: the weights that `run` needs, with its adapters or its prompt. A merge
    that was interrupted is done again; one that is finished is left alone."""
    place, new = RunFolder(run_of(Path(run))), RunFolder(Path(out))
    config = place.config()
    if not is_partial(place):
        raise UserError(f"{place.path}: nothing to merge; it has all its weights")
    if place.summary() is None:
        raise UserError(f"{place.path}: not finished yet; run its fit command again to finish it")
    record = _record(place, config)
    if _is_foreign(new, record):
        raise UserError(f"{new.path}: not empty; choose a new folder for the merged run")
    loaded = load(place.path)
    with new.lock():
        if new.summary() is None:
            _write(new, record, place, loaded)
    return load(new.path)


def _is_foreign(new: RunFolder, record: Json) -> bool:
    """Whether the folder holds anything but this merge, which may have been interrupted."""
    names = os.listdir(new.path) if os.path.isdir(new.path) else []
    if all(name.startswith(".") for name in names):  # the lock, and what has a temporary name
        return False
    return "run.json" not in names or {**new.record(), "parameters": 0} != {**record, "parameters": 0}


def _write(new: RunFolder, record: Json, place: RunFolder, loaded: Run) -> None:
    model = lora.merge(loaded.model)
    whole = save({n: t.contiguous() for n, t in weights(model).items()})
    parameters = {"parameters": count_parameters(model)}
    new.write_record(record | parameters)
    new.trim_metrics(-1)  # of a merge that was interrupted
    for entry in place.metrics():
        new.log(entry)
    new.publish("tokenizer", _content(place.published("tokenizer")))
    new.publish_model({_WEIGHTS: whole} | _content(place.model_files()))
    new.write_summary(loaded.summary | {"bytes": len(whole), "borrowed_bytes": 0} | parameters)


def _record(place: RunFolder, config: RunConfig) -> Json:
    """That of the run, but without adapters; `merged` tells where they were."""
    record = place.record()
    plain: Json = json.loads(config.model_copy(update={"lora": NO_ADAPTERS}).model_dump_json())
    merged = {"run": str(place.path), "lora": record["config"]["lora"], "base": record.pop("base", None)}
    return record | {"config": plain, "merged": merged}


def _content(folder: Path) -> dict[str, durable.Content]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name not in _REPLACED}
