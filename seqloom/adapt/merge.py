"""`merge`: a run with adapters becomes a plain run, with the adapters added to the weights.

The new folder stands on its own: it needs neither the run that the adapters were trained on nor peft, and everything
that takes a run takes it, `fit --from` included. Scores stay those that were measured with the adapters, from which the
merged weights differ by rounding.
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
from seqloom.runs.build import count_parameters
from seqloom.runs.folder import RunFolder
from seqloom.runs.run import Run, load
from seqloom.runs.settings import RunConfig
from seqloom.runs.winner import run_of
from seqloom.train.checkpoint import weights
from seqloom.train.settings import NO_ADAPTERS

_REPLACED = {durable.MANIFEST, lora.CONFIG, lora.WEIGHTS}


def merge(run: str | Path, *, out: str | Path) -> Run:
    """Write a plain run to a new folder `out`: the weights of `run` with its adapters added."""
    place, new = RunFolder(run_of(Path(run))), RunFolder(Path(out))
    config = place.config()
    if not config.lora.rank:
        raise UserError(f"{place.path}: has no adapters to merge; it was trained in full")
    if os.path.isdir(new.path) and os.listdir(new.path):
        raise UserError(f"{new.path}: not empty; choose a new folder for the merged run")
    loaded = load(place.path)
    model = lora.merge(loaded.model)
    files: dict[str, durable.Content] = {
        "model.safetensors": save({n: t.contiguous() for n, t in weights(model).items()})
    }
    with new.lock():
        new.write_record(_record(place, config) | {"parameters": count_parameters(model)})
        for entry in place.metrics():
            new.log(entry)
        new.publish("tokenizer", _content(place.published("tokenizer")))
        new.publish_model(files | _content(place.model_files()))
        new.write_summary(loaded.summary | {"parameters": count_parameters(model)})
    return load(new.path)


def _record(place: RunFolder, config: RunConfig) -> Json:
    """That of the run, but without adapters; `merged` tells where they were."""
    record = place.record()
    plain: Json = json.loads(config.model_copy(update={"lora": NO_ADAPTERS}).model_dump_json())
    merged = {"run": str(place.path), "lora": record["config"]["lora"], "base": record.pop("base", None)}
    return record | {"config": plain, "merged": merged}


def _content(folder: Path) -> dict[str, durable.Content]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name not in _REPLACED}
