"""The weights that a run starts from (`fit --from`): those of another run, or of a model that another tool wrote.

A run that only adds something to them, adapters or a prompt, holds nothing else, so it needs these weights whenever it
is loaded. It records where they are, relative to its own folder, and their SHA-256: without them, or with others, it is
not loaded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open
from torch import Tensor

from seqloom.core.errors import RunError, UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Vocabulary
from seqloom.data.shapes.shape import AnyShape
from seqloom.layers.lora import adapt
from seqloom.layers.tensors import read_tensors
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import shape_of, task_config
from seqloom.runs.settings import RunConfig
from seqloom.runs.source import is_foreign, run_folder
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import NoTokenizer
from seqloom.train.transfer import check_transfer, freeze, transfer

_WEIGHTS = "model.safetensors"


class Base(NamedTuple):
    name: str  # as the user knows it
    folder: Path  # the run folder that holds them
    tensors: dict[str, Tensor]  # by name
    sha256: str  # of the file

    @property
    def foreign(self) -> bool:
        return is_foreign(self.name)

    @property
    def bytes(self) -> int:
        """Of the file."""
        return (RunFolder(self.folder).model_files() / _WEIGHTS).stat().st_size


def borrows(config: RunConfig) -> bool:
    """Whether a run with these settings holds only what it adds to the weights that it starts from."""
    return bool(config.lora.rank) or config.train.method == "prompt"


def is_partial(folder: RunFolder) -> bool:
    """Whether a run lacks the weights that it started from. Prompted runs of earlier versions hold a copy of them."""
    config = folder.config()
    return bool(config.lora.rank) or (borrows(config) and "base" in folder.record())


def added(config: RunConfig) -> str:
    return "adapters" if config.lora.rank else "a prompt"


def read_base(start: str) -> Base:
    folder, files = _whole(start)
    return Base(start, folder.path, read_tensors(files / _WEIGHTS), durable.digests(files)[_WEIGHTS])


def check_base(start: str, model: SequenceModel) -> None:
    """Refuse weights that the model cannot start from, before they are loaded; it may be a blueprint."""
    _, files = _whole(start)
    with safe_open(files / _WEIGHTS, "pt") as weights:
        shapes = {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    check_transfer(model, shapes, start)


def _whole(start: str) -> tuple[RunFolder, Path]:
    """A run that holds all of its weights, and the folder of these."""
    folder = RunFolder(run_folder(start))
    if is_partial(folder):
        raise UserError(
            f"{start}: holds only {added(folder.config())}; make a plain run of it first: seqloom merge {start} "
            "--out NEW"
        )
    return folder, folder.model_files()


def tokenizer_of(start: str, shape: AnyShape) -> Tokenizer | None:
    """The tokenizer of the weights to start from; None: they read numbers, as data of this shape is."""
    folder = RunFolder(run_folder(start))
    before, now = (found.tokenizer is NoTokenizer for found in (shape_of(folder.config()), shape))
    if before != now:
        kinds = {True: "numbers", False: "text"}
        raise UserError(
            f"{start}: was trained on {kinds[before]}, but this data is {kinds[now]}; start from a run on {kinds[now]}"
        )
    return None if now else Tokenizer.load(folder.model_files())


def recorded_base(base: Base, folder: RunFolder) -> Json:
    """For run.json."""
    return {"folder": None if base.foreign else os.path.relpath(base.name, folder.path), "sha256": base.sha256}


def find_base(folder: RunFolder, config: RunConfig) -> Base:
    """The weights that the run in this folder adds to, wherever both were moved together."""
    start, known = str(config.train.start), {"folder": ".", "sha256": ""} | folder.record().get("base", {})
    places = [start] if is_foreign(start) else _places(folder, start, known["folder"])
    if not places:
        raise UserError(
            f"{folder.path}: holds only {added(config)}; {start}, whose weights it needs, is missing: restore it"
        )
    for place in places:
        base = read_base(place)
        if base.sha256 == known["sha256"]:
            return base
    raise RunError(
        f"{folder.path}: belongs to other weights than those in {base.name} (SHA-256 was {known['sha256'][:12]}, is "
        f"{base.sha256[:12]}); restore these"
    )


def _places(folder: RunFolder, start: str, beside: str) -> list[str]:
    """Where the run may be now."""
    some = (folder.path / beside, Path(start))
    return [os.path.normpath(place) for place in some if (place / "run.json").exists()]


def base_of(config: RunConfig, folder: RunFolder, again: bool) -> Base | None:
    """Where the weights of a run come from; None: from a random generator. `again`: it has begun already."""
    if not config.train.start:
        return None
    return find_base(folder, config) if again and config.lora.rank else read_base(config.train.start)


def restrict(model: SequenceModel, base: Base | None, config: RunConfig) -> None:
    """Freeze what is not to be trained: with adapters nearly all of it, with a prompt everything."""
    if config.lora.rank and base:
        adapt(model, base.tensors, **config.lora.model_dump())
    if config.train.method == "prompt":
        model.requires_grad_(False)
        model.borrowed = frozenset(name for name, _ in model.named_parameters(remove_duplicate=False))
    freeze(model, config.train.freeze)


def attach(model: SequenceModel, base: Base, config: RunConfig) -> None:
    """Give a new model the weights of its base, and empty adapters or an empty prompt."""
    transfer(model, base.tensors, base.name, head=config.train.method == "prompt", blank=base.foreign)
    restrict(model, base, config)


def predicts_the_same(base: Base, config: RunConfig, vocabulary: Vocabulary) -> bool:
    """Whether the head of the base predicts what this run does: the next token, with the same tokens; or what the same
    task does, with the same tokens or labels."""
    folder = RunFolder(base.folder)
    record = folder.record()
    if task_config(config).next_token:
        tokens = getattr(vocabulary, "tokenizer", vocabulary).hash
        return task_config(folder.config()).next_token and Tokenizer.load(folder.model_files()).hash == tokens
    same = record["config"]["task"]["name"] == config.task["name"] and not task_config(folder.config()).next_token
    return bool(same and record.get("tokenizer", {}).get("hash") == vocabulary.hash)
