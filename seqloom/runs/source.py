"""Where weights come from: a run folder, or a model that another tool wrote, converted once into such a folder.

    hf:PATH          a folder of Hugging Face transformers or a GGUF file; ORGANISATION/MODEL where the hub is reached
    weights:NAME     a package that `seqloom weights` installed
    anything else    a run folder

A converted model lives in the cache and has what a run has (run.json, model/ with a manifest, summary.json), so every
command that takes a run takes it. Nothing here imports torch until a model is converted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.waiting import during
from seqloom.data.shapes import find_shape
from seqloom.data.stream import default_cache
from seqloom.runs.folder import RunFolder
from seqloom.runs.lock import InUse
from seqloom.runs.registry import find_config, shape_of
from seqloom.runs.settings import RunConfig
from seqloom.train.settings import TrainConfig
from seqloom.weights.files import stamp
from seqloom.weights.packages import PACKAGES, PREFIX, place_of

if TYPE_CHECKING:
    from torch import Tensor

    from seqloom.weights.reading import Foreign

HF = "hf:"
_FORMAT = 1  # raised when the conversion changes, so that converted models are made anew
_LONGEST = 1024  # tokens of context that a language model is scored with
_whole: set[Path] = set()  # folders that this process has verified
_PATIENCE = 1800.0  # seconds to wait for another process that converts the same model


def is_foreign(name: str | Path) -> bool:
    """Whether this names weights of another tool, not a run folder."""
    return str(name).startswith((HF, PREFIX))


def cache_folder() -> Path:
    return default_cache() / "weights"


def run_folder(name: str | Path) -> Path:
    """The run folder that holds these weights; those of another tool are converted when they are first used."""
    name = str(name)
    if not is_foreign(name):
        _check_prefix(name)
        return Path(name)
    path = locate(name)
    folder = RunFolder(_converted_folder(name, path))
    started = time.monotonic()
    while folder.path not in _whole and not folder.is_whole():
        try:
            with folder.lock():
                if not folder.is_whole():
                    with during(f"converting {name}, once"):
                        _convert(name, path, folder)
        except InUse:
            if time.monotonic() - started > _PATIENCE:
                raise
            time.sleep(0.2)
    _whole.add(folder.path)
    return folder.path


def _check_prefix(name: str) -> None:
    """Tell someone who left out the prefix, or wrote an entry of a comparison, how weights are named here."""
    way, _, source = name.partition(":")
    if os.path.lexists(name):
        return
    if name in PACKAGES:
        raise UserError(f"{name}: no such run; the pretrained weights of this name are {PREFIX}{name}")
    if is_foreign(source):
        raise UserError(
            f"{name}: {way}: is for entries of a comparison; name the weights alone, {source}, and say how to use "
            "them with an option: train.method=probe, setfit or prompt, or lora.rank=8"
        )


def locate(name: str) -> Path:
    """The folder or file of a model."""
    if name.startswith(PREFIX):
        return place_of(name.removeprefix(PREFIX), cache_folder())
    text = name.removeprefix(HF)
    if not text:
        raise UserError(f"{name} names no model; give the path of a folder or a .gguf file, for example hf:models/bert")
    path = Path(text).expanduser()
    if path.exists():
        return path
    if re.fullmatch(r"[\w.-]+/[\w.-]+", text):
        return _download(name, text)
    raise UserError(f"{name}: no such folder or file")


def _download(name: str, model: str) -> Path:
    """From the hub, if it can be reached: configuration, tokenizer and safetensors, no code."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(f"{name}: no such folder; from the hub: pip install 'seqloom[pretrained]'") from None
    wanted = ["*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.jinja"]
    try:
        return Path(snapshot_download(model, allow_patterns=wanted, ignore_patterns=["*/*"], etag_timeout=10))
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UserError(f"{name}: no such folder, and the hub could not be asked for it ({reason})") from None


def _converted_folder(name: str, path: Path) -> Path:
    facts = [_FORMAT, os.path.realpath(path), *stamp(path)]
    key = hashlib.sha256(json.dumps(facts).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    title = re.sub(r"[^\w.-]+", "-", name.partition(":")[2]).strip("-.")[-60:]
    return cache_folder() / "converted" / f"{title}-{key}"


def _convert(name: str, path: Path, folder: RunFolder) -> None:
    from safetensors.torch import save

    from seqloom.runs.record import plain, versions
    from seqloom.weights.reading import read

    found = read(path, name)
    config, own = _config(name, found), found.tokenizer
    folder.publish("tokenizer", own.files())
    tensors = found.tensors()
    count = _check(name, config, found, tensors, folder.published("tokenizer"))
    folder.publish_model({"model.safetensors": save(tensors), "naive.json": b"null", **own.files()})
    folder.write_record(
        {
            "config": plain(config),
            "converted": name,
            "bare": not found.headed,
            "versions": versions(),
            "parameters": count,
            "data": {},
            "tokenizer": {"kind": own.kind, "size": own.size, "hash": own.hash},
        }
    )
    none: Json = {"seconds": 0.0, "wall_seconds": 0.0, "steps": 0, "tokens": 0, "best_step": None, "scores": {}}
    folder.write_summary({"parameters": count, **none})


def _config(name: str, found: Foreign) -> RunConfig:
    """Settings under which the model was made, as far as they are known."""
    options = dict(found.model)
    kind = options.pop("name")
    model = find_config("models", kind).model_validate(options)
    task = find_config("tasks", found.task)
    limit = getattr(model, "context", None) or _LONGEST
    own = {"length": min(limit, _LONGEST)} if "length" in task.model_fields else {}
    shape = find_shape(task.shape({}))
    sections = {
        "task": {"name": found.task, **task.model_validate(own).model_dump()},
        "model": {"name": kind, **model.model_dump()},
        "data": shape.options.model_validate({"train": name}).model_dump(),
        "tokenizer": shape.tokenizer.model_validate({"kind": "pretrained"}).model_dump(),
    }
    return RunConfig.model_validate({**sections, "train": TrainConfig.model_validate({})})


def _check(name: str, config: RunConfig, found: Foreign, tensors: dict[str, Tensor], tokenizer: Path) -> int:
    """The number of parameters; refuses tensors that are not those of the model, which must not happen."""
    from seqloom.runs.build import blueprint
    from seqloom.runs.registry import model_config, task_config
    from seqloom.train.checkpoint import load_weights, weights

    task = task_config(config).build(shape_of(config).load_vocabulary(tokenizer))
    model = blueprint(config, task)
    parts = ("",) if found.headed else ("backbone.",)
    mine = {one: t.shape for one, t in weights(model).items() if one.startswith(parts)}
    theirs = {one: t.shape for one, t in tensors.items() if one.startswith(parts)}
    if mine != theirs:
        wrong = sorted(one for one in mine.keys() | theirs.keys() if mine.get(one) != theirs.get(one))
        raise UserError(f"{name}: its weights do not make this model: {', '.join(wrong[:3])}")
    if found.verify is not None:
        real = model_config(config).assemble(task).eval()
        load_weights(real, {**weights(real), **tensors} if not found.headed else tensors)
        found.verify(real)
    return sum(t.numel() for t in tensors.values())
