"""Entries that start from another run or from pretrained weights, and the ways to use these.

    weights:minilm           fine-tuned in full; also hf:PATH, or run:PATH for a run of your own
    probe:weights:minilm     frozen, its output layer solved
    setfit:weights:minilm    tuned by contrasting rows, then probed
    lora:weights:minilm      with adapters
    prompt:weights:smollm2   as it is, asked with examples in a prompt

They have the size, the tokenizer and the layout of these weights.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seqloom.core.config import parse_overrides
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs import durable
from seqloom.runs.base import tokenizer_of
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import shape_of
from seqloom.runs.settings import RunConfig
from seqloom.runs.source import HF, is_foreign, run_folder
from seqloom.tokenizers import Tokenizer

RUN = "run"
SOURCES = ("weights", "hf", RUN)  # what stands before the colon in the name of a source


class Way(NamedTuple):
    section: str  # of options that are written without one
    settings: tuple[str, ...]


WAYS = {
    "full": Way("model", ()),
    "probe": Way("model", ("train.method=probe",)),
    "setfit": Way("model", ("train.method=setfit",)),
    "lora": Way("lora", ("lora.rank=8",)),
    "prompt": Way("task", ("train.method=prompt", "task.prompt=default", "task.shots=4")),
}


class Written(NamedTuple):
    """An entry that starts from weights, as it was written."""

    name: str  # unless the user gives one
    model: str
    options: tuple[str, ...]


def starts(words: Sequence[str]) -> bool:
    """Whether the words of an entry, between its colons, name weights to start from."""
    return words[0] in WAYS or (words[0] in SOURCES and len(words) > 1)


def read(words: Sequence[str]) -> Written:
    way, rest = (words[0], words[1:]) if words[0] in WAYS else ("full", words)
    if len(rest) < 2 or rest[0] not in SOURCES:
        raise UserError(
            f"--models {':'.join(words)}: {way} needs the weights to start from, for example {way}:weights:minilm, "
            f"{way}:hf:PATH or {way}:run:PATH"
        )
    source = rest[1] if rest[0] == RUN else f"{rest[0]}:{rest[1]}"
    section, settings = WAYS[way]
    own = [option if "." in option.partition("=")[0] else f"{section}.{option}" for option in rest[2:]]
    given = parse_overrides(own)
    kept = [setting for setting in settings if setting.partition("=")[0] not in given]
    title = re.sub(r"[^\w.+-]+", "-", os.path.basename(rest[1].rstrip("/"))).strip("-") or rest[1]
    name = " ".join([*([way] if words[0] in WAYS else []), title, *rest[2:]])
    model = RunFolder(run_folder(source)).config().model["name"]
    return Written(name, model, (f"train.start={source}", *kept, *own))


def tokenizer(config: RunConfig) -> Tokenizer | None:
    """The tokenizer of the weights that a run starts from; None: it is trained from scratch, or reads numbers."""
    return tokenizer_of(config.train.start, shape_of(config)) if config.train.start else None


def pretrained(config: RunConfig) -> str | None:
    """The name of weights that another tool trained, on data that is not known here; also of those that a run of ours
    started from."""
    start = config.train.start
    while start and not is_foreign(start):
        gone = not (Path(start) / "run.json").exists()
        start = None if gone else RunFolder(Path(start)).config().train.start
    return start


def overlaps(config: RunConfig, data: Json) -> bool:
    """Whether the run that this one starts from was trained on the file that the test set was taken from, but not on
    the same split of it."""
    start = config.train.start
    if not start or is_foreign(start):
        return False
    known, test = RunFolder(Path(start)).record().get("data", {}), data.get("test", {})
    same = known.get("train", {}).get("file") == test.get("file") and test.get("file") is not None
    return bool(same and known.get("test", {}).get("hash") != test.get("hash"))


def digest(config: RunConfig) -> Json:
    """What identifies the weights that a run starts from, wherever they are."""
    if not config.train.start:
        return {}
    files = RunFolder(run_folder(config.train.start)).model_files()
    return {"start": durable.digests(files).get("model.safetensors")}


def with_absolute_start(config: RunConfig) -> RunConfig:
    """Valid in any working directory."""
    start = config.train.start
    if start and not is_foreign(start):
        start = os.path.abspath(start)
    elif start and start.startswith(HF) and (path := Path(start.removeprefix(HF)).expanduser()).exists():
        start = f"{HF}{path.absolute()}"
    return config.model_copy(update={"train": config.train.model_copy(update={"start": start})})
