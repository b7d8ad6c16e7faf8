"""Checkpoints: everything needed to resume training exactly, as safetensors and JSON.

model.safetensors        weights, by name
optimizer.safetensors    optimiser state, by weight and kind
process-0.safetensors    one per process: random generator state, and model states carried between batches
progress.json            steps, tokens, seconds, best score so far
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from seqloom.core.errors import RunError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, describe_state, flatten_state, map_state, unflatten_state
from seqloom.train.engine import Engine


def weights(model: SequenceModel) -> dict[str, Tensor]:
    """Every parameter and persistent buffer once, by its first name (tied weights have several), but for those that
    another run holds."""
    persistent = model.state_dict(keep_vars=True)
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: tensor for name, tensor in named.items() if name in persistent and name not in model.borrowed}


def load_weights(model: SequenceModel, tensors: dict[str, Tensor], engine: Engine | None = None) -> None:
    """All or nothing: every name, shape, type and value is checked before the first weight changes."""
    mine = weights(model)
    flexible = model.grows
    missing, extra = sorted(mine.keys() - tensors.keys()), sorted(tensors.keys() - mine.keys())
    both = sorted(mine.keys() & tensors.keys())
    sized = [] if flexible else [name for name in both if name not in _growing(model)]
    faults = {
        "missing": missing,
        "unexpected": extra,
        "of a different shape": [n for n in sized if mine[n].shape != tensors[n].shape]
        + [n for n in both if mine[n].dim() != tensors[n].dim() and n not in sized],
        "of a different type": [n for n in both if mine[n].dtype != tensors[n].dtype],
        "not finite": [n for n in both if not _is_sound(tensors[n], isinstance(mine[n], nn.Parameter))],
    }
    if problems := "; ".join(f"{fault}: {', '.join(names[:5])}" for fault, names in faults.items() if names):
        raise RunError(f"the weights do not match this model: {problems}")
    with torch.no_grad():
        if flexible:
            try:
                model.load_state_dict(tensors)
            except RuntimeError as error:
                raise RunError(f"the weights do not match this model: {str(error).splitlines()[-1].strip()}") from None
            return
        for name, tensor in mine.items():
            if tensor.shape != tensors[name].shape:
                tensor.resize_(tensors[name].shape)
            tensor.copy_(engine.place(tensors[name], tensor) if engine else tensors[name])
    model.train(model.training)  # functions that hold products of the former weights are dropped


def _is_sound(tensor: Tensor, learned: bool) -> bool:
    """Without NaN and, if it is learned, infinity; the logarithm of a count of zero is minus infinity."""
    if not tensor.is_floating_point():
        return True
    return bool(tensor.isfinite().all() if learned else not tensor.isnan().any())


def _growing(model: SequenceModel) -> set[str]:
    """Buffers whose size depends on the training data, which modules name in `grows`."""
    parts = [(path, getattr(part, "grows", ())) for path, part in model.named_modules() if part is not model]
    return {f"{path}.{name}" for path, names in parts if isinstance(names, tuple) for name in names}


def pack_process(states: list[State]) -> bytes:
    """The state of this process: random generators and carried model states."""
    tensors = {"generator": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["generator.cuda"] = torch.cuda.get_rng_state()
    for n, state in enumerate(states):
        tensors |= {k: t.contiguous().cpu().clone() for k, t in flatten_state(state, f"state.{n}").items()}
    return save(tensors, {"states": json.dumps([describe_state(state) for state in states])})


def restore_process(path: Path, device: torch.device) -> list[State]:
    """Restore the random generators and return the carried model states."""
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        structures: list[Any] = json.loads(file.metadata()["states"])
    torch.set_rng_state(tensors["generator"])
    if "generator.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["generator.cuda"])
    states = [unflatten_state(s, tensors, f"state.{n}") for n, s in enumerate(structures)]
    return [map_state(lambda t: t.clone().to(device), state) for state in states]
