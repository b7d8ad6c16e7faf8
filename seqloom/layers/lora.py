"""LoRA (Hu et al. 2021), by the peft library: the weights stay frozen, and every matrix learns an addition of low rank.

    W x + alpha / rank * B A x        A: (rank, in); B: (out, rank), initially zero

peft wraps a layer, which is then called as before. Code that reads the weight of a layer instead of calling it, such as
the sequence kernels of recurrent cells and one-token decoding, asks `weight_of` (layers/linear.py), which includes the
adapter. The head, and parts that another run cannot give, are trained in full (peft's `modules_to_save`). All other
weights are borrowed from that run and not saved with this one (`SequenceModel.borrowed`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.network import Network, SequenceModel
from seqloom.layers.linear import Linear, TiedLinear
from seqloom.layers.tensors import read_tensors

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # where peft looks
_ADAPTER, _MODEL = "default", "base_model.model."  # name of the adapter in a model; of the model in an adapter's file
_PLAIN = (nn.Linear, Linear, TiedLinear)  # other subclasses may do more than multiply
_TABLE = "embed.weight"  # may have more rows than in the other run: a mask token


def adapt(
    model: SequenceModel,
    known: Mapping[str, Tensor],
    *,
    rank: int,
    alpha: int,
    dropout: float = 0.0,
    targets: Sequence[str] = (),
    full: Sequence[str] = (),
) -> None:
    """Give a model, whose weights were copied from `known`, its adapters, and freeze all else.

    `targets`: matrices by the end of their path, * for any; empty: every matrix of the backbone. `full`: parts besides
    the head to train in full.
    """
    if not isinstance(model, Network) or not model.descends:
        raise UserError(f"lora.rank={rank}: this model is not trained by gradient descent; set lora.rank=0")
    whole = _parts_in_full(model, known, full)
    chosen = [path for path in _targets(model, targets) if not _inside(path, whole)]
    if not chosen:
        raise UserError(f"lora.full={','.join(full)}: leaves no matrix for an adapter; leave some parts out")
    if rank > (most := max(min(_shape(model, path)) for path in chosen)):
        raise UserError(
            f"lora.rank={rank}: no matrix to adapt has a rank above {most}; use at most {most}, far less as a rule, or "
            "lora.rank=0 to train all weights"
        )
    peft = _peft()
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=chosen,
        fan_in_fan_out=not any(isinstance(model.get_submodule(path), nn.Linear) for path in chosen),
    )
    peft.inject_adapter_in_model(config, model, _ADAPTER)
    model.train(model.training)  # new layers are in training mode, whatever the model is in
    config.modules_to_save = whole
    for path in whole:
        model.get_submodule(path).requires_grad_(True)
    model.borrowed = frozenset(name for name in model.state_dict() if not _is_own(name, whole))


def describe(model: SequenceModel) -> str:
    """Which matrices of an adapted model learn, and how many of its parameters are trained."""
    config = _config(model)
    trained = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    last = f".lora_B.{_ADAPTER}.weight"
    layers = [name.removesuffix(last) for name in trained if name.endswith(last)]
    kinds = ", ".join(f"{count} {name}" for name, count in Counter(map(_short, layers)).items())
    in_full = sum(count for name, count in trained.items() if ".lora_" not in name)
    beside = f", {in_full:,} of them in full: {', '.join(config.modules_to_save)}" if in_full else ""
    count, every = sum(trained.values()), sum(p.numel() for p in model.parameters())
    share = f"{count:,} of {every:,} parameters are trained ({count / every:.2%}){beside}"
    matrices = "1 matrix" if len(layers) == 1 else f"{len(layers)} matrices"
    return f"LoRA of rank {config.r} on {matrices} ({kinds}): {share}"


def merge(model: SequenceModel) -> SequenceModel:
    """Add the adapters to the weights, in place: a plain model that computes the same."""
    for path, part in list(model.named_modules()):
        if hasattr(part, "get_delta_weight"):
            layer: Any = part
            layer.merge(safe_merge=True)
            model.set_submodule(path, layer.get_base_layer())
    model.borrowed = frozenset()
    model.__dict__.pop("peft_config", None)
    model.requires_grad_(True)
    return model.train(model.training)  # functions that hold the former weights are dropped


def adapter_files(model: SequenceModel, tensors: Mapping[str, Tensor]) -> dict[str, bytes]:
    """The files of an adapted model, in peft's format. `tensors`: its own weights, by name."""
    config = _config(model)
    own = {name: first for name, first in _first_names(model).items() if _is_own(name, config.modules_to_save)}
    found = {_in_file(name): tensors[first].clone() for name, first in own.items()}
    facts = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    described = json.dumps(facts | {"inference_mode": True}, indent=2, sort_keys=True)
    return {CONFIG: described.encode() + b"\n", WEIGHTS: save(found, {"format": "pt"})}


def adapter_tensors(model: SequenceModel, folder: Path) -> dict[str, Tensor]:
    """The tensors in the files of an adapter, by their names in the adapted model."""
    names = {_in_file(name): first for name, first in _first_names(model).items()}
    return {names.get(name, name): tensor for name, tensor in read_tensors(folder / WEIGHTS).items()}


def _targets(model: Network, targets: Sequence[str]) -> list[str]:
    """Paths of the matrices to adapt. Each target must match something; without targets, no matrix may be missed."""
    layers = {path: part for path, part in model.named_modules() if path.startswith("backbone.") and _is_plain(part)}
    if not targets:
        _check_complete(model, layers)
        return list(layers)
    found: list[str] = []
    for target in targets:
        matched = [path for path in layers if _ends_with(path, target)]
        if not matched:
            raise UserError(f"lora.targets={target}: no matrix has this name; choose from {_listed(layers)}")
        found += matched
    return list(dict.fromkeys(found))


def _shape(model: Network, path: str) -> torch.Size:
    layer: Any = model.get_submodule(path)
    shape: torch.Size = layer.weight.shape
    return shape


def _check_complete(model: Network, layers: Mapping[str, Any]) -> None:
    if not layers:
        raise UserError("lora: this model has no matrices between embedding and head; set lora.rank=0")
    tables = [part for part in model.modules() if isinstance(part, nn.Embedding)]
    seen = {id(part.weight) for part in (*tables, *layers.values())}
    inside = [(name, p) for name, p in model.named_parameters() if name.startswith("backbone.")]
    if missed := [name for name, p in inside if p.dim() == 2 and id(p) not in seen]:
        raise UserError(f"lora: {missed[0]} cannot have an adapter; name others with lora.targets: {_listed(layers)}")


def _parts_in_full(model: Network, known: Mapping[str, Tensor], full: Sequence[str]) -> list[str]:
    """Paths of the parts to train in full: those named, the head, and whatever is not in `known`."""
    parts = [path for path, part in model.named_modules() if path and part.state_dict()]
    found: list[str] = []
    for name in full:
        matched = [path for path in parts if _ends_with(path, name)]
        if not matched:
            raise UserError(f"lora.full={name}: no part has this name; choose from {_listed(parts)}")
        found += matched
    tied = {id(p) for p in model.embed.parameters()} & {id(p) for p in model.head.parameters()}
    if tied and "embed" not in found:
        _take_head(model, known, tied)
    elif "head" in parts:
        found.append("head")
    for name, tensor in model.state_dict().items():
        if name == _TABLE and name in known:
            _fill_rows(model.embed, len(known[name]))
        elif not name.startswith("head.") and (name not in known or known[name].shape != tensor.shape):
            found.append(name.rpartition(".")[0])
    return [path for path in dict.fromkeys(found) if not _inside(path, [other for other in found if other != path])]


@torch.no_grad()
def _take_head(model: Network, known: Mapping[str, Tensor], tied: set[int]) -> None:
    """A head that shares its matrix with the frozen embedding is frozen too; what else it has must be known."""
    for name, p in model.head.named_parameters(prefix="head"):
        if id(p) in tied:
            continue
        if name not in known or known[name].shape != p.shape:
            raise UserError(
                f"lora: the head is tied to the frozen embedding, but its {name} is new; add lora.full=embed"
            )
        p.copy_(known[name])


@torch.no_grad()
def _fill_rows(embed: nn.Module, count: int) -> None:
    """Rows beyond the known ones get the mean of these: frozen, and not saved, they must not be random."""
    table: Any = embed.weight
    table[count:] = table[:count].mean(0)


def _config(model: SequenceModel) -> Any:
    """As peft keeps it in the model."""
    return model.peft_config[_ADAPTER]  # type: ignore[index]


def _first_names(model: nn.Module) -> dict[str, str]:
    """Of every tensor of the state, the name under which it is saved: the first, where weights are tied."""
    first = {id(p): name for name, p in reversed(list(model.named_parameters(remove_duplicate=False)))}
    return {name: first.get(id(tensor), name) for name, tensor in model.state_dict(keep_vars=True).items()}


def _in_file(name: str) -> str:
    """`base_model.model.backbone.out.lora_A.weight` for `backbone.out.lora_A.default.weight`."""
    return _MODEL + name.replace(f".{_ADAPTER}.", ".")


def _is_own(name: str, whole: Sequence[str]) -> bool:
    return ".lora_" in name or _inside(name, whole)


def _inside(path: str, parts: Iterable[str]) -> bool:
    return any(path == part or path.startswith(f"{part}.") for part in parts)


def _ends_with(path: str, name: str) -> bool:
    return fnmatchcase(path, name) or fnmatchcase(path, f"*.{name}")


def _is_plain(part: nn.Module) -> bool:
    """A layer that multiplies by a matrix: ours, or that of a library (`Conv1D` is the transposed one of GPT-2)."""
    return type(part) in _PLAIN or type(part).__name__ == "Conv1D"


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(map(_short, paths)))


def _short(path: str) -> str:
    """`attention.qkv` for `backbone.blocks.0.attention.qkv`: alike in all layers."""
    words = path.removeprefix("backbone.").split(".")
    numbers = [n for n, word in enumerate(words[:-1]) if word.isdecimal()]
    return ".".join(words[numbers[-1] + 1 if numbers else 0 :])


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise UserError("LoRA needs the peft package: pip install 'seqloom[lora]'") from None
    return peft
