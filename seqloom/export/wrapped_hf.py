"""Models of transformers that were wrapped as they are: back into the class that they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqloom.core.rows import Json
from seqloom.export.source import Source
from seqloom.export.target import RUN_ITSELF, needing, refused
from seqloom.layers.wrapped import configuration, parse_options

_BODY = "backbone.body."
_CLASSES = {  # by task and kind of model
    ("language_model", "causal"): "AutoModelForCausalLM",
    ("translation", "encoder-decoder"): "AutoModelForSeq2SeqLM",
}


def write_wrapped(source: Source, folder: Path) -> Json:
    """The files of the model, without a tokenizer; its configuration."""
    with needing("hf"):
        import transformers
    section, kind = source.section, (source.task.name, source.model.kind)
    if kind not in _CLASSES:
        reason = f"{kind[0]} by a wrapped model that is {kind[1]} has inputs or outputs that its classes lack"
        raise refused("hf", reason, RUN_ITSELF)
    if source.run.config.task.get("reverse"):
        raise refused("hf", "sources are read backwards (task.reverse)", RUN_ITSELF)
    rows = source.tensors["embed.weight"].size(0)
    changes = {"hidden_size": section["width"], "vocab_size": rows, "tie_word_embeddings": section["tie"]}
    config = configuration(section["architecture"], parse_options(section["config"]), **changes)
    full = getattr(transformers, _CLASSES[kind]).from_config(config).float().eval()
    _fill(full, source)
    full.save_pretrained(folder)
    found: Json = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return found


@torch.no_grad()
def _fill(full: Any, source: Source) -> None:
    tensors = {name: tensor.float() for name, tensor in source.tensors.items()}
    body = {name.removeprefix(_BODY): tensor for name, tensor in tensors.items() if name.startswith(_BODY)}
    full.base_model.load_state_dict(body, strict=False)
    _copy(full.get_input_embeddings().weight, tensors["embed.weight"])
    outputs = full.get_output_embeddings()
    if "head.weight" in tensors:
        _copy(outputs.weight, tensors["head.weight"])
    bias, place = tensors.get("head.bias"), getattr(outputs, "bias", None)
    place = getattr(full, "final_logits_bias", None) if place is None else place
    if bias is not None and place is not None:
        _copy(place.view(-1), bias)
    elif bias is not None and bool(bias.any()):
        raise refused(
            "hf",
            f"the output layer has a bias, which {type(full).__name__} lacks",
            "train with -o model.output_bias=false",
        )


def _copy(place: Tensor, values: Tensor) -> None:
    if place.shape != values.shape:
        raise refused("hf", f"a table of {tuple(place.shape)} does not hold one of {tuple(values.shape)}", RUN_ITSELF)
    place.copy_(values)
