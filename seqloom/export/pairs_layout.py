"""An encoder with a decoder in the names of BART's relatives, which Marian, Pegasus and Blenderbot share.

Their sinusoids have all sines first, ours alternate: one order of the width throughout makes both the same model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.core.rows import Json
from seqloom.export.source import Source
from seqloom.export.target import refused
from seqloom.weights.layouts.layout import Unfit

INSTEAD = "--to onnx holds it"
PLACES = 1024  # positions of a table of sinusoids, at least; ours have no end

_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
_OWN = ("embed.weight", "embed.others.weight", "backbone.", "head.")


class Parts(NamedTuple):
    """`tensors`: everything but the tables of tokens and the output layer, whose rows are tokens, by name."""

    config: Json
    tensors: dict[str, Tensor]
    read: Tensor  # embedding of the source
    write: Tensor  # embedding of the target
    out: Tensor  # output layer; the same tensor as `write` if tied
    bias: Tensor

    @property
    def shared(self) -> bool:
        """Whether one table is everything."""
        return self.read is self.write is self.out

    @property
    def places(self) -> int:
        found: int = self.config["max_position_embeddings"]
        return found


def find_parts(source: Source, target: str) -> Parts:
    """Raises if the run is no such model, or reads its sources as no tokenizer gives them."""
    try:
        return _parts(source)
    except Unfit as reason:
        raise refused(target, str(reason), INSTEAD) from None


def _parts(source: Source) -> Parts:
    c, tensors = source.section, source.tensors
    if source.task.name != "translation":
        raise Unfit(f"transformer is held for text to text only, not for {source.task.name}")
    if source.run.config.task.get("reverse"):
        raise Unfit("sources are read backwards (task.reverse), which no tokenizer there does")
    if strange := [name for name in tensors if not name.startswith(_OWN)]:
        raise Unfit(f"{strange[0]} has no place in it")
    order = torch.arange(c["width"])
    if c["positions"] == "sinusoidal":
        order = torch.cat((order[::2], order[1::2]))
    read, write = _tables(source, order)
    out = tensors["head.weight"].float()[:, order] if "head.weight" in tensors else write
    bias = tensors["head.bias"].float() if "head.bias" in tensors else torch.zeros(len(out))
    made = dict(_layers(tensors, order)) | _norms_and_places(source, order)
    return Parts(_config(source, made), made, read, write, out, bias)


def _tables(source: Source, order: Tensor) -> tuple[Tensor, Tensor]:
    """The embeddings of source and target: of two vocabularies, the rows of the source follow."""
    pair: Any = source.run.tokenizer
    whole = source.tensors["embed.weight"].float()
    if "embed.others.weight" in source.tensors:
        whole = torch.cat((whole, source.tensors["embed.others.weight"].float()))
    whole = whole[:, order]
    return (whole, whole) if pair.joint else (whole[pair.shift :], whole[: pair.shift])


def _config(source: Source, made: dict[str, Tensor]) -> Json:
    c, pair = source.section, source.run.tokenizer
    ids = {"bos_token_id": pair.target.bos, "eos_token_id": pair.target.eos, "pad_token_id": pair.target.pad}
    found: Json = {"d_model": c["width"], "dropout": c["dropout"], "dtype": "float32", **ids}
    for side, depth in (("encoder", c["depth"]), ("decoder", c["decoder_depth"] or c["depth"])):
        found[f"{side}_layers"], found[f"{side}_attention_heads"] = depth, c["heads"]
        found[f"{side}_ffn_dim"] = len(made[f"model.{side}.layers.0.fc1.bias"])
    return found | {
        "activation_function": "relu" if c["bend"] == "relu" else "gelu_pytorch_tanh",
        "scale_embedding": bool(c["tie"]),
        "max_position_embeddings": len(made["model.encoder.embed_positions.weight"]),
        "decoder_start_token_id": pair.target.bos,
        "forced_eos_token_id": None,
    }


def _norms_and_places(source: Source, order: Tensor) -> dict[str, Tensor]:
    """The last norms, which post-norm lacks, and one table of positions for both sides."""
    made = {}
    for side in _NORMS:
        for part in ("weight", "bias"):
            if f"backbone.{side}_norm.{part}" in source.tensors:
                made[f"model.{side}.layer_norm.{part}"] = source.tensors[f"backbone.{side}_norm.{part}"][order].float()
        made[f"model.{side}.embed_positions.weight"] = _places(source)[:, order]
    return made


def _places(source: Source) -> Tensor:
    backbone: Any = source.model.get_submodule("backbone")
    if source.section["positions"] == "learned":
        return source.tensors["backbone.positions.table.weight"].float()
    count = max(PLACES, source.run.config.task.get("longest", 0))
    found: Tensor = backbone.positions(torch.arange(count)).float()
    return found


def _layers(tensors: dict[str, Tensor], order: Tensor) -> Iterator[tuple[str, Tensor]]:
    for side, norms in _NORMS.items():
        count = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith(f"backbone.{side}."))
        for n in range(count):
            ours, theirs = f"backbone.{side}.{n}.", f"model.{side}.layers.{n}."
            for part, weight in _layer(_Block(tensors, ours, order), norms):
                yield theirs + part, weight.contiguous()


class _Block(NamedTuple):
    """One block of ours; linear layers that read or write the width have it in the new order."""

    tensors: dict[str, Tensor]
    prefix: str
    order: Tensor

    def reading(self, name: str, count: int) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of each of the layers that are stacked."""
        weight = self.tensors[f"{self.prefix}{name}.weight"].float()[:, self.order]
        return list(zip(weight.chunk(count), self._bias(name, len(weight)).chunk(count), strict=True))

    def writing(self, name: str) -> tuple[Tensor, Tensor]:
        weight = self.tensors[f"{self.prefix}{name}.weight"].float()
        return weight[self.order], self._bias(name, len(weight))[self.order]

    def norm(self, number: int) -> tuple[Tensor, Tensor]:
        weight, bias = (self.tensors[f"{self.prefix}norm_{number}.{part}"].float() for part in ("weight", "bias"))
        return weight[self.order], bias[self.order]

    def _bias(self, name: str, size: int) -> Tensor:
        found = self.tensors.get(f"{self.prefix}{name}.bias")
        return torch.zeros(size) if found is None else found.float()


def _layer(block: _Block, norms: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
    found: dict[str, tuple[Tensor, Tensor]] = {}
    if len(norms) == 3:
        q, k, v = block.reading("attention.qkv", 3)
        found |= _attention("self_attn", (q, k, v, block.writing("attention.out")))
        own = "source", "encoder_attn"
    else:
        own = "attention", "self_attn"
    (q,), (k, v) = block.reading(f"{own[0]}.q", 1), block.reading(f"{own[0]}.kv", 2)
    found |= _attention(own[1], (q, k, v, block.writing(f"{own[0]}.out")))
    found |= {"fc1": block.reading("feed.up", 1)[0], "fc2": block.writing("feed.out")}
    found |= {name: block.norm(n) for n, name in enumerate(norms, 1)}
    for name, (weight, bias) in found.items():
        yield f"{name}.weight", weight
        yield f"{name}.bias", bias


def _attention(name: str, layers: tuple[tuple[Tensor, Tensor], ...]) -> dict[str, tuple[Tensor, Tensor]]:
    return {f"{name}.{part}_proj": layer for part, layer in zip(("q", "k", "v", "out"), layers, strict=True)}
