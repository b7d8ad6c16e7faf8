"""From a foreign folder or file to what a run folder needs: a model section, a tokenizer, tensors by our names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.tokenizers.pretrained import Pretrained
from seqloom.weights.files import Folder
from seqloom.weights.gguf import read_gguf
from seqloom.weights.layouts import LAYOUTS
from seqloom.weights.layouts.layout import Layout, Unfit
from seqloom.weights.tensors import Taker, Tensors, open_tensors
from seqloom.weights.tokens import make_tokenizer, read_tokenizer, refuse_code


class Foreign(NamedTuple):
    """A model that another tool wrote, in our terms."""

    model: Json  # model section
    task: str  # that it was trained for
    headed: bool  # has an output layer for that task
    tokenizer: Pretrained
    tensors: Callable[[], dict[str, Tensor]]
    verify: Callable[[SequenceModel], None] | None = None  # raises if the model with these weights answers wrongly


def read(path: Path, name: str) -> Foreign:
    """A folder with config.json, or a GGUF file; `name`: what the user typed, for messages."""
    if path.is_file():
        return _read_file(path, name)
    folder = Folder(path, name)
    config = folder.json("config.json")
    if config is None:
        files = [one for one in folder.names() if one.endswith(".gguf")]
        if len(files) == 1 and (found := folder.find(files[0])) is not None:
            return _read_file(found, name)
        raise folder.refused("no config.json; it must be a folder that transformers wrote, or a file ending in .gguf")
    refuse_code(folder, "config.json", config)
    if config.get("quantization_config") is not None:
        raise folder.refused(
            "its weights are quantised (quantization_config); use the unquantised model, or a GGUF file"
        )
    tensors = open_tensors(folder)

    def tokenizer(task: str, rows: int) -> Pretrained:
        return read_tokenizer(folder, config, task, rows)

    try:
        return _fitted(config, tensors, name, tokenizer)
    except Unfit:
        return _wrapped(folder, config, tensors, tokenizer)


def _read_file(path: Path, name: str) -> Foreign:
    found = read_gguf(path, name)

    def tokenizer(task: str, rows: int) -> Pretrained:
        try:
            return make_tokenizer(found.tokenizer, {}, found.config, task, rows, found.template)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None

    try:
        return _fitted(found.config, found.tensors, name, tokenizer)
    except Unfit as reason:
        raise UserError(f"{name}: {reason}; as a folder with safetensors it could be read") from None


def _wrapped(folder: Folder, config: Json, tensors: Tensors, tokenizer: Callable[[str, int], Pretrained]) -> Foreign:
    from seqloom.weights.wrapping import wrap

    made = wrap(folder, config, tensors)
    own = tokenizer(made.task, len(made.tensors["embed.weight"]))

    def load() -> dict[str, Tensor]:
        found = made.tensors
        return found if made.headed else found | {"embed.weight": _with_mask(found["embed.weight"], own)}

    return Foreign(made.section, made.task, made.headed, own, load, made.verify)


def _fitted(config: Json, tensors: Tensors, name: str, tokenizer: Callable[[str, int], Pretrained]) -> Foreign:
    kind = config.get("model_type")
    layout = LAYOUTS.get(kind) if isinstance(kind, str) else None
    if layout is None:
        raise Unfit(f"model_type {str(kind)[:40]!r} has no layout here; known: {', '.join(LAYOUTS)}")
    try:
        section = layout.section(config)
    except Unfit as reason:
        raise Unfit(f"{kind} with {reason} has no layout here") from None
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    rows = _check(layout, section, config, tensors)["embed.weight"].size(0)
    own = tokenizer(layout.task, rows)

    def load() -> dict[str, Tensor]:
        take = Taker(tensors, dry=False)
        found = {ours: tensor.contiguous() for ours, tensor in layout.tensors(section, config, take)}
        return found if layout.headed else found | {"embed.weight": _with_mask(found["embed.weight"], own)}

    return Foreign(section, layout.task, layout.headed, own, load)


def _check(layout: Layout, section: Json, config: Json, tensors: Tensors) -> dict[str, Tensor]:
    """Our tensors on the meta device: every name and shape is checked before any number is read."""
    take = Taker(tensors, dry=True)
    found = dict(layout.tensors(section, config, take))
    unknown = [name for name in take.left() if not layout.ignored.fullmatch(name)]
    if unknown:
        raise UserError(
            f"{tensors.name}: {len(unknown)} tensors are not part of {config['model_type']}, such as {unknown[0][:80]}"
        )
    return found


def _with_mask(table: Tensor, tokenizer: Pretrained) -> Tensor:
    """Our tasks give the mask token the id after all others."""
    row = torch.zeros_like(table[:1]) if tokenizer.mask is None else table[tokenizer.mask][None]
    return torch.cat((table, row))
