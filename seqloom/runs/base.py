"""The weights that a run starts from: those of another run (`fit --from`).

A run with adapters holds nothing else, so it needs these weights whenever it is loaded. It records where they are,
relative to its own folder, and their SHA-256: without them, or with others, it is not loaded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file
from torch import Tensor

from seqloom.core.errors import RunError, UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Vocabulary
from seqloom.layers.lora import adapt
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder
from seqloom.runs.settings import RunConfig
from seqloom.train.transfer import freeze, transfer

_WEIGHTS = "model.safetensors"


class Base(NamedTuple):
    name: str  # as the user knows it
    tensors: dict[str, Tensor]  # by name
    sha256: str  # of the file


def read_base(start: str) -> Base:
    folder = RunFolder(Path(start))
    if folder.config().lora.rank:
        raise UserError(
            f"{start}: holds adapters only; merge them with their weights first: seqloom merge {start} --out NEW"
        )
    files = folder.model_files()
    return Base(start, load_file(files / _WEIGHTS), durable.digests(files)[_WEIGHTS])


def recorded_base(base: Base, folder: RunFolder) -> Json:
    """For run.json."""
    return {"folder": os.path.relpath(base.name, folder.path), "sha256": base.sha256}


def find_base(folder: RunFolder, config: RunConfig) -> Base:
    """The weights that the adapters in this folder belong to, wherever both were moved together."""
    start, known = str(config.train.start), {"folder": ".", "sha256": ""} | folder.record().get("base", {})
    places = [place for place in (folder.path / known["folder"], Path(start)) if (place / "run.json").exists()]
    if not places:
        raise UserError(
            f"{folder.path}: holds adapters only; {start}, whose weights they adapt, is missing: restore it"
        )
    for place in places:
        base = read_base(os.path.normpath(place))
        if base.sha256 == known["sha256"]:
            return base
    raise RunError(
        f"{folder.path}: its adapters belong to other weights than those in {base.name} (SHA-256 was "
        f"{known['sha256'][:12]}, is {base.sha256[:12]}); restore these"
    )


def base_of(config: RunConfig, folder: RunFolder, again: bool) -> Base | None:
    """Where the weights of a run come from; None: from a random generator. `again`: it has begun already."""
    if not config.train.start:
        return None
    return find_base(folder, config) if again and config.lora.rank else read_base(config.train.start)


def restrict(model: SequenceModel, base: Base | None, config: RunConfig) -> None:
    """Freeze what is not to be trained; with adapters, that is nearly all of it."""
    if config.lora.rank and base:
        adapt(model, base.tensors, **config.lora.model_dump())
    freeze(model, config.train.freeze)


def attach(model: SequenceModel, base: Base, config: RunConfig) -> None:
    """Give a new model the weights of its base, and empty adapters."""
    transfer(model, base.tensors, base.name)
    restrict(model, base, config)


def predicts_the_same(base: Base, config: RunConfig, vocabulary: Vocabulary) -> bool:
    """Whether the head of the base predicts what this run does: the same task, with the same tokens or labels."""
    record = RunFolder(Path(base.name)).record()
    tokens = record.get("tokenizer", {}).get("hash")
    return bool(record["config"]["task"]["name"] == config.task["name"] and tokens == vocabulary.hash)
